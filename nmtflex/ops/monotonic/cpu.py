"""Scans, their expectation and chunks in loops on the CPU.

Everything runs in float32, or in float64 for float64 keys or scores. Legend as in
``nmtflex.ops.monotonic``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmtflex.ops.monotonic import loops
from nmtflex.ops.monotonic.loops import Chunked, Expected, Scanned
from nmtflex.ops.tensors import precise
from nmtflex.ops.threads import run_rows

UNITS = 8  # of a key, that take no longer than one number of an expectation or of a chunk


@torch.no_grad()
def scan(
    query: Tensor,
    v: Tensor,
    bias: Tensor,
    keys: Tensor,
    lengths: Tensor,
    rows: Tensor | None,
    start: Tensor,
) -> tuple[Tensor, Tensor]:
    """Scan step by step; see ``nmtflex.ops.monotonic.scan``."""
    alike = (part.to(precise(keys.dtype)).contiguous() for part in (query, v, bias, keys))
    query, v, bias, keys = alike
    rows = torch.arange(len(query)) if rows is None else rows.contiguous()
    parts = (query, v, bias, keys, rows, start.contiguous(), lengths.contiguous())
    scanned = Scanned._make(part.numpy() for part in parts)
    position = torch.empty(query.shape[:2], dtype=torch.long)
    chosen = query.new_empty(query.shape[:2])
    units = min(query.shape[1], keys.shape[1]) * query.numel()
    run_rows(loops.scan, len(query), units, scanned, position.numpy(), chosen.numpy())
    return position, chosen


def expected(energies: Tensor, before: Tensor, lengths: Tensor) -> Tensor:
    """Return the probabilities of the stops; see ``nmtflex.ops.monotonic.expected``."""
    exact = precise(energies.dtype)
    parts = (part.to(exact).contiguous() for part in (energies, before))
    return _Expected.apply(*parts, lengths.contiguous())  # type: ignore[no-untyped-call]


def chunked(alpha: Tensor, scores: Tensor, lengths: Tensor, width: int) -> Tensor:
    """Spread the stops over their chunks; see ``nmtflex.ops.monotonic.chunked``."""
    exact = precise(scores.dtype)
    parts = (part.to(exact).contiguous() for part in (alpha, scores))
    return _Chunked.apply(*parts, lengths.contiguous(), width)  # type: ignore[no-untyped-call]


class _Expected(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, energies: Tensor, before: Tensor, lengths: Tensor) -> Tensor:
        """Return alpha."""
        alpha = torch.empty_like(energies)
        parts = (energies, before, lengths, alpha)
        ctx.save_for_backward(*parts)
        made = Expected._make(part.numpy() for part in parts)
        run_rows(loops.expected, len(alpha), UNITS * alpha.numel(), made)
        return alpha

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of energies and of the first alpha."""
        energies, before, *_ = ctx.saved_tensors
        of_energies, of_before = torch.empty_like(energies), torch.empty_like(before)
        room = before.new_empty(len(before), 2, before.shape[1])
        made = Expected._make(part.numpy() for part in ctx.saved_tensors)
        arrays = (part.numpy() for part in (grads.contiguous(), of_energies, of_before, room))
        run_rows(loops.backward_expected, len(before), UNITS * grads.numel(), made, *arrays)
        return of_energies, of_before, None


class _Chunked(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, alpha: Tensor, scores: Tensor, lengths: Tensor, width: int) -> Tensor:
        """Return beta."""
        beta, room = torch.empty_like(alpha), alpha.new_empty(len(alpha), width)
        parts = (alpha, scores, lengths, room)
        ctx.save_for_backward(*parts)
        chunks = Chunked._make(part.numpy() for part in parts)
        run_rows(loops.chunked, len(alpha), UNITS * width * alpha.numel(), chunks, beta.numpy())
        return beta

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of alpha and scores."""
        alpha, scores, _, room = ctx.saved_tensors
        of_alpha, of_scores = torch.empty_like(alpha), torch.empty_like(scores)
        chunks = Chunked._make(part.numpy() for part in ctx.saved_tensors)
        arrays = (part.numpy() for part in (grads.contiguous(), of_alpha, of_scores))
        units = UNITS * room.shape[1] * grads.numel()
        run_rows(loops.backward_chunked, len(alpha), units, chunks, *arrays)
        return of_alpha, of_scores, None, None
