"""Additive scores and the walk of the focus in Triton, dot products and contexts in PyTorch.

Everything is computed in float32; float64 goes to ``reference``. The kernels of
scores are those of ``nmtflex.ops.attend``, with every step a hypothesis. Legend as in
``nmtflex.ops.sequence``, and N = B T.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmtflex.ops.attend import triton_backward, triton_loops
from nmtflex.ops.launch import PART, POSITIONS, UNITS, blocks, launching
from nmtflex.ops.sequence import reference
from nmtflex.ops.sequence import triton_loops as kernels
from nmtflex.ops.sequence.reference import contexts

__all__ = ["contexts", "scores", "walk"]


def scores(query: Tensor, keys: Tensor, lengths: Tensor, v: Tensor | None) -> Tensor:
    """Score queries against keys; see ``nmtflex.ops.sequence.scores``."""
    if v is None or keys.dtype == torch.float64:
        return reference.scores(query, keys, lengths, v)
    parts = (query, keys, v.float(), lengths.long())
    return _Additive.apply(*(part.contiguous() for part in parts))  # type: ignore[no-untyped-call]


def walk(
    scores: Tensor, gate: Tensor, focus: Tensor, lengths: Tensor, sigma: float, tau: float
) -> tuple[Tensor, Tensor]:
    """Weigh step by step; see ``nmtflex.ops.sequence.walk``."""
    if scores.dtype == torch.float64:
        return reference.walk(scores, gate, focus, lengths, sigma, tau)
    parts = (scores, gate.float(), focus.float(), lengths.long())
    contiguous = (part.contiguous() for part in parts)
    return _Walk.apply(*contiguous, 2 * sigma**2, tau)  # type: ignore[no-untyped-call]


class _Additive(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, v: Tensor, lengths: Tensor) -> Tensor:
        """Return v . tanh(q + k)."""
        ctx.save_for_backward(query, keys, v, lengths)
        (count, steps, size), length = query.shape, keys.shape[1]
        parts = blocks(length, PART)
        made = torch.zeros(count, steps, length, dtype=torch.float32, device=keys.device)
        unused = made.new_empty(2, count * steps, parts)
        with launching(keys.device):
            triton_loops.score[count * steps, parts](
                query, v, keys, *_place(query, lengths), v, v, 1.0, length, size, parts,
                made, *unused.unbind(0), True, False, PART, POSITIONS, UNITS,
            )  # fmt: skip
        return made

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of query, keys and v."""
        query, keys, v, lengths = ctx.saved_tensors
        (count, steps, size), length = query.shape, keys.shape[1]
        parts, place, grads = blocks(length, PART), _place(query, lengths), grads.contiguous()
        of_query, of_v = grads.new_zeros(2, count * steps, parts, size).unbind(0)
        of_keys = torch.empty_like(keys, dtype=torch.float32)
        ends = torch.arange(count + 1, device=keys.device) * steps
        order = torch.arange(count * steps, device=keys.device)
        with launching(keys.device):
            triton_backward.of_query[count * steps, parts, blocks(size, UNITS)](
                grads, query, v, keys, *place, length, size, parts, of_query, of_v,
                True, PART, POSITIONS, UNITS,
            )  # fmt: skip
            triton_backward.of_keys[count, blocks(length, POSITIONS), blocks(size, UNITS)](
                grads, query, v, keys, *place[1:], order, ends, length, size, of_keys,
                True, POSITIONS, UNITS,
            )  # fmt: skip
        of_query = of_query.sum(1).view_as(query).to(query.dtype)
        return of_query, of_keys.to(keys.dtype), of_v.sum((0, 1)), None


def _place(query: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the sentence, the first position and the end [N] that each query reads."""
    stop = lengths.repeat_interleave(query.shape[1])
    rows = torch.arange(len(stop), device=stop.device) // query.shape[1]
    return rows, torch.zeros_like(stop), stop


class _Walk(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        gate: Tensor,
        start: Tensor,
        lengths: Tensor,
        spread: float,
        tau: float,
    ) -> tuple[Tensor, Tensor]:
        """Return the weights and the focus of each step."""
        weights, focus = torch.empty_like(scores, dtype=torch.float32), torch.empty_like(gate)
        ctx.save_for_backward(gate, start, lengths, weights, focus)
        ctx.spread, ctx.dtype = spread, scores.dtype
        count, steps, length = scores.shape
        windowed = tau < math.inf
        limit = min(tau, torch.finfo(torch.float32).max)
        with launching(scores.device):
            kernels.walk[count,](
                scores, gate, start, lengths, spread, limit, steps, length, weights, focus,
                windowed, PART,
            )  # fmt: skip
        return weights, focus

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_weights: Tensor, grad_focus: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of scores, gate and start."""
        gate, start, lengths, weights, focus = ctx.saved_tensors
        count, steps, length = weights.shape
        of_scores, of_gate, of_start = (torch.empty_like(like) for like in (weights, gate, start))
        with launching(weights.device):
            kernels.backward_walk[count,](
                gate, start, lengths, ctx.spread, steps, length, weights, focus,
                grad_weights.contiguous(), grad_focus.contiguous(), of_scores, of_gate, of_start,
                PART,
            )  # fmt: skip
        return of_scores.to(ctx.dtype), of_gate, of_start, None, None, None
