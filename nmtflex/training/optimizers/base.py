"""What all optimisers share.

PyTorch's classes import PyTorch's compiler, a second and 140 MB; its functions do not, and give the
same numbers bit for bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import torch
from torch import Tensor

from nmtflex.training.moving_average import MovingAverage

State = dict[str, Tensor]  # of one weight, by name


class Optimizer(ABC):
    """Base class: the weights, their state and their moving average.

    Args:
        weights: Those that are trained.
        rate: Learning rate; may be changed before a step.
        weight_decay: Of matrices; biases, norms and other vectors have none.
        ema: Decay of the moving average of the weights; 0 for none.
        factors: By which the rate of some weights is multiplied.
    """

    def __init__(
        self,
        weights: Iterable[Tensor],
        rate: float = 1e-3,
        weight_decay: float = 0.0,
        ema: float = 0.0,
        factors: Mapping[Tensor, float] = MappingProxyType({}),
    ) -> None:
        self.weights, self.rate, self.weight_decay = list(weights), rate, weight_decay
        self.state: dict[Tensor, State] = {}  # of the weights that have had a gradient
        self.factors = factors
        self.average = MovingAverage(self.weights, ema)

    @torch.no_grad()
    def step(self) -> None:
        """Update the weights that have a gradient."""
        groups: dict[tuple[float, float], dict[Tensor, Tensor]] = {}
        for weight in self.weights:
            if weight.grad is not None:
                decay = self.weight_decay if weight.dim() > 1 else 0.0
                rate = self.rate * self.factors.get(weight, 1.0)
                groups.setdefault((rate, decay), {})[weight] = weight.grad
        for (rate, decay), grads in groups.items():
            self.update(grads, rate, decay)

    @abstractmethod
    def update(self, grads: dict[Tensor, Tensor], rate: float, weight_decay: float) -> None:
        """Update weights, each with its gradient, at one rate and weight decay."""

    @abstractmethod
    def first_state(self, weight: Tensor) -> State:
        """Return the state of a weight that was never updated."""
