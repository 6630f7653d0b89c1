"""Dropout in one pass on the CPU, without a mask in memory.

Whether a number is dropped depends on a seed and on its place, so the backward pass computes it
again. The seed is drawn from PyTorch's generator, so a checkpoint of that generator is enough to
resume. Results are the same for any number of threads.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmtflex.ops.dropout import loops, reference
from nmtflex.ops.threads import run_rows

FORMATS = (torch.float32, torch.float64, torch.bfloat16)


def dropout(x: Tensor, p: float) -> Tensor:
    """Drop a share p; see ``nmtflex.ops.dropout``."""
    if x.dtype not in FORMATS or not x.numel():
        return reference.dropout(x, p)
    return _Dropout.apply(x, p, int(torch.empty((), dtype=torch.long).random_()))  # type: ignore[no-untyped-call]


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
    x = x.detach().contiguous()
    left = torch.empty_like(x)
    loop, parts = loops.drop, [x.view(-1), left.view(-1)]
    if x.dtype == torch.bfloat16:  # which numpy does not have: its bits
        loop, parts = loops.drop_bfloat16, [part.view(torch.uint16) for part in parts]
    run_rows(loop, x.numel(), x.numel(), *(part.numpy() for part in parts), p, seed)
    return left
