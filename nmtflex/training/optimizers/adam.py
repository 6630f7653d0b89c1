"""Adam: every weight has its own rate, from its gradients so far (Kingma & Ba, 1412.6980)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

from nmtflex.training.optimizers.base import Optimizer, State


class Adam(Optimizer):
    """``torch.optim.Adam`` or ``AdamW`` with ``fused=True``, bit for bit.

    Args:
        weights: Those that are trained.
        rate: Learning rate; may be changed before a step.
        beta1: Decay of the mean gradient.
        beta2: Decay of the mean squared gradient.
        eps: Added to the root of the mean squared gradient.
        decoupled: Weight decay shrinks the weight itself by rate x decay (AdamW, Loshchilov &
            Hutter, 1711.05101), instead of adding decay x weight to the gradient.
        others: ``weight_decay``, ``ema`` and ``factors``, as of every optimiser.
    """

    def __init__(
        self,
        weights: Iterable[Tensor],
        rate: float = 1e-3,
        *,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        decoupled: bool = False,
        **others: Any,
    ) -> None:
        super().__init__(weights, rate, **others)
        self.beta1, self.beta2, self.eps, self.decoupled = beta1, beta2, eps, decoupled

    def update(self, grads: dict[Tensor, Tensor], rate: float, weight_decay: float) -> None:
        """Make a step of Adam."""
        for weight in grads:
            if weight not in self.state:
                self.state[weight] = self.first_state(weight)
        states = [self.state[weight] for weight in grads]
        adam(
            list(grads),
            list(grads.values()),
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            fused=True,
            decoupled_weight_decay=self.decoupled,
            amsgrad=False,
            beta1=self.beta1,
            beta2=self.beta2,
            lr=rate,
            weight_decay=weight_decay,
            eps=self.eps,
            maximize=False,
        )

    def first_state(self, weight: Tensor) -> State:
        """Return a count of 0 and two means of 0."""
        return {
            "step": torch.zeros((), device=weight.device),
            "exp_avg": torch.zeros_like(weight),
            "exp_avg_sq": torch.zeros_like(weight),
        }
