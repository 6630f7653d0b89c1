"""Adam: every weight has its own rate, from its gradients so far (Kingma & Ba, 1412.6980)."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim.adam import adam

State = dict[str, Tensor]  # of one weight: the number of updates, and means of its shape


class Adam:
    """``torch.optim.Adam(weights, rate, fused=True)``, bit for bit.

    PyTorch's class imports PyTorch's compiler, a second and 140 MB; its function does not.

    Args:
        weights: Those that are trained.
        rate: Learning rate; may be changed before a step.
    """

    def __init__(self, weights: Iterable[Tensor], rate: float = 1e-3) -> None:
        self.weights, self.rate = list(weights), rate
        self.state: dict[Tensor, State] = {}  # of the weights that have had a gradient

    @torch.no_grad()
    def step(self) -> None:
        """Update the weights that have a gradient."""
        grads = {weight: weight.grad for weight in self.weights if weight.grad is not None}
        for weight in grads:
            if weight not in self.state:
                self.state[weight] = first_state(weight)
        states = [self.state[weight] for weight in grads]
        adam(
            list(grads),
            list(grads.values()),
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.rate,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )


def first_state(weight: Tensor) -> State:
    """Return the state of a weight that was never updated."""
    return {
        "step": torch.zeros((), device=weight.device),
        "exp_avg": torch.zeros_like(weight),
        "exp_avg_sq": torch.zeros_like(weight),
    }
