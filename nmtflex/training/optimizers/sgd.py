"""Stochastic gradient descent, with or without momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim.sgd import sgd

from nmtflex.training.optimizers.base import Optimizer, State


class SGD(Optimizer):
    """``torch.optim.SGD`` with ``fused=True``, bit for bit.

    Args:
        weights: Those that are trained.
        rate: Learning rate; may be changed before a step.
        momentum: Decay of the sum of gradients that replaces the gradient; 0 for none.
        others: ``weight_decay``, ``ema`` and ``factors``, as of every optimiser.
    """

    def __init__(
        self, weights: Iterable[Tensor], rate: float = 1e-3, *, momentum: float = 0.0, **others: Any
    ) -> None:
        super().__init__(weights, rate, **others)
        self.momentum = momentum

    def update(self, grads: dict[Tensor, Tensor], rate: float, weight_decay: float) -> None:
        """Make a step; the first gradient of a weight begins its sum."""
        if self.momentum:
            for weight in grads:
                if weight not in self.state:
                    self.state[weight] = self.first_state(weight)
        sums = [
            self.state[weight]["momentum_buffer"] if self.momentum else None for weight in grads
        ]
        sgd(
            list(grads),
            list(grads.values()),
            sums,
            fused=True,
            weight_decay=weight_decay,
            momentum=self.momentum,
            lr=rate,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )

    def first_state(self, weight: Tensor) -> State:
        """Return a sum of 0; without momentum there is no state."""
        return {"momentum_buffer": torch.zeros_like(weight)} if self.momentum else {}
