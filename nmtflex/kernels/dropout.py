"""Dropout in one pass, without a mask in memory.

Whether a number is dropped follows from a seed and from its place; the backward pass asks anew. The
seed is drawn from PyTorch's generator, so what a checkpoint keeps of that is enough to go on, and
results are the same at any number of threads.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmtflex.kernels import choice

FORMATS = (torch.float32, torch.float64)


class Dropout(nn.Dropout):
    """In training, sets a share p of all numbers to 0 and divides the others by 1 - p.

    In plain PyTorch on a GPU, in bfloat16, and wherever ``NMTFLEX_KERNELS=reference``.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the shape of ``x``, with gradient."""
        if not self.training:
            return x
        if not 0 < self.p < 1 or not x.numel():
            return super().forward(x)
        if choice(x.device) != "cpu" or x.dtype not in FORMATS:
            return super().forward(x)
        return _Dropout.apply(x, self.p, int(torch.empty((), dtype=torch.long).random_()))  # type: ignore[no-untyped-call]


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float, seed: int) -> Tensor:
        ctx.p, ctx.seed = p, seed
        return _dropped(x, p, seed)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _dropped(grad, ctx.p, ctx.seed), None, None


def _dropped(x: Tensor, p: float, seed: int) -> Tensor:
    """Return x / (1 - p) with 0 where seed and place say so."""
    # Imported where needed: numba takes half a second.
    from nmtflex.kernels import dropout_loops
    from nmtflex.kernels.threads import run_rows

    x = x.detach().contiguous()
    left = torch.empty_like(x)
    arrays = x.view(-1).numpy(), left.view(-1).numpy()
    run_rows(dropout_loops.drop, x.numel(), x.numel(), *arrays, p, seed)
    return left
