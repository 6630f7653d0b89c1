"""An SSRU through all steps in Triton; one step of a cell, and a gate, in PyTorch.

Everything is computed in float32; float64 goes to ``reference``. Legend as in
``nmtflex.ops.recurrent``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmtflex.ops.launch import UNITS, blocks, launching
from nmtflex.ops.recurrent import reference
from nmtflex.ops.recurrent import triton_loops as kernels
from nmtflex.ops.recurrent.reference import gate, lstm

__all__ = ["gate", "lstm", "ssru"]


def ssru(gates: Tensor, candidates: Tensor, c: Tensor) -> Tensor:
    """Walk an SSRU through all steps; see ``nmtflex.ops.recurrent``."""
    if gates.dtype == torch.float64:
        return reference.ssru(gates, candidates, c)
    parts = (part.contiguous() for part in (gates, candidates, c.float()))
    return _SSRU.apply(*parts)  # type: ignore[no-untyped-call]


class _SSRU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: Tensor, candidates: Tensor, before: Tensor) -> Tensor:
        """Return c of every step."""
        count, steps, size = gates.shape
        c = torch.empty_like(gates, dtype=torch.float32)
        ctx.save_for_backward(gates, before, c)
        ctx.dtype = candidates.dtype
        with launching(gates.device):
            kernels.ssru[count, blocks(size, UNITS)](
                gates, candidates, before, steps, size, c, UNITS
            )
        return c

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of gates, candidates and the memory before."""
        gates, before, c = ctx.saved_tensors
        count, steps, size = gates.shape
        of_gates, of_before = torch.empty_like(gates), torch.empty_like(before)
        of_candidates = torch.empty_like(gates, dtype=ctx.dtype)
        with launching(gates.device):
            kernels.backward_ssru[count, blocks(size, UNITS)](
                gates, before, steps, size, c, grads.contiguous(),
                of_gates, of_candidates, of_before, UNITS,
            )  # fmt: skip
        return of_gates, of_candidates, of_before
