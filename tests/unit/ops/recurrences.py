"""Random inputs of an SSRU, its definition as a loop over numbers, and its gradients."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Problem = list[Tensor]  # gates and candidates [B, T, D], c [B, D]


def problem(
    sentences: int = 3, steps: int = 4, size: int = 5, dtype: torch.dtype = torch.float64
) -> Problem:
    """Random inputs; the gates span nearly closed to nearly open."""
    draw = torch.Generator().manual_seed(sentences + steps)
    shapes = (sentences, steps, size), (sentences, steps, size), (sentences, size)
    drawn = (torch.randn(shape, generator=draw, dtype=torch.float64) for shape in shapes)
    return [(3 * part).to(dtype) for part in drawn]


def by_hand(gates: Tensor, candidates: Tensor, c: Tensor) -> Tensor:
    """c of every step, one number after the other."""
    made = torch.empty(gates.shape, dtype=torch.float64)
    for b, t, d in torch.cartesian_prod(*map(torch.arange, gates.shape)).tolist():
        before = made[b, t - 1, d] if t > 0 else c[b, d]
        f = 1 / (1 + math.exp(-gates[b, t, d].item()))
        made[b, t, d] = f * before + (1 - f) * candidates[b, t, d]
    return made


def results(ssru: Callable[..., Tensor], parts: Problem) -> list[Tensor]:
    """c of every step, and the gradients of all inputs."""
    leaves = [part.detach().clone().requires_grad_() for part in parts]
    made = ssru(*leaves)
    draw = torch.Generator().manual_seed(1)
    arriving = torch.randn(made.shape, generator=draw, dtype=torch.float64).to(made)
    return [made.detach(), *torch.autograd.grad(made, leaves, arriving)]


def exactly(parts: Problem) -> Problem:
    """The same numbers in float64."""
    return [part.double() for part in parts]


def assert_close(got: list[Tensor], expected: list[Tensor], atol: float) -> None:
    for part, other in zip(got, expected, strict=True):
        torch.testing.assert_close(part.double(), other, rtol=0, atol=atol)
