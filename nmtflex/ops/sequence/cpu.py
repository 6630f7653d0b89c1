"""Additive scores and the walk of the focus in loops on the CPU.

Everything runs in float32, or in float64 for float64 keys or scores. Legend as in
``nmtflex.ops.sequence``.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmtflex.ops.sequence import loops
from nmtflex.ops.sequence.loops import Scored, Walked
from nmtflex.ops.tensors import precise
from nmtflex.ops.threads import run_rows

UNITS = 8  # of a key, that take no longer than one weight of a walk


def scores(query: Tensor, keys: Tensor, lengths: Tensor, v: Tensor) -> Tensor:
    """Return v . tanh(q + k); see ``nmtflex.ops.sequence.scores``."""
    exact = precise(keys.dtype)
    parts = (part.to(exact).contiguous() for part in (query, keys, v))
    return _Scores.apply(*parts, lengths.contiguous())  # type: ignore[no-untyped-call]


def walk(
    scores: Tensor, gate: Tensor, focus: Tensor, lengths: Tensor, sigma: float, tau: float
) -> tuple[Tensor, Tensor]:
    """Weigh step by step; see ``nmtflex.ops.sequence.walk``."""
    exact = precise(scores.dtype)
    parts = (part.to(exact).contiguous() for part in (scores, gate, focus))
    tau = tau if tau == math.inf else min(tau, torch.finfo(exact).max)
    return _Walk.apply(*parts, lengths.contiguous(), 2 * sigma**2, tau)  # type: ignore[no-untyped-call]


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> Tensor:
        """Return the scores of query, keys, v and lengths."""
        ctx.save_for_backward(*tensors)
        query, keys = tensors[:2]
        made = query.new_zeros(*query.shape[:2], keys.shape[1])
        scored = Scored(*(tensor.numpy() for tensor in tensors))
        queries = query.shape[0] * query.shape[1]
        run_rows(loops.scores, queries, made.numel() * query.shape[2], scored, made.numpy())
        return made

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of query, keys and v."""
        query, keys, v, _ = ctx.saved_tensors
        of_query, of_keys = torch.zeros_like(query), torch.zeros_like(keys)
        of_v = v.new_zeros(len(query), len(v))
        scored = Scored(*(tensor.numpy() for tensor in ctx.saved_tensors))
        parts = (part.numpy() for part in (grads.contiguous(), of_query, of_keys, of_v))
        units = grads.numel() * len(v)
        run_rows(loops.backward_scores, len(query), units, scored, *parts)
        return of_query, of_keys, of_v.sum(0), None


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
        weights, focus = torch.empty_like(scores), torch.empty_like(gate)
        ctx.save_for_backward(gate, start, lengths, weights, focus)
        ctx.spread = spread
        array = scores.numpy()
        walked = _walked(spread, gate, start, lengths, weights, focus)
        units = UNITS * scores.numel()
        run_rows(loops.walk, len(scores), units, array, walked, array.dtype.type(tau))
        return weights, focus

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_weights: Tensor, grad_focus: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of scores, gate and start."""
        gate, start, *_ = ctx.saved_tensors
        of_scores = torch.empty_like(grad_weights, memory_format=torch.contiguous_format)
        of_gate, of_start = torch.empty_like(gate), torch.empty_like(start)
        arriving = grad_weights.contiguous(), grad_focus.contiguous()
        parts = (part.numpy() for part in (*arriving, of_scores, of_gate, of_start))
        walked = _walked(ctx.spread, *ctx.saved_tensors)
        run_rows(loops.backward_walk, len(gate), UNITS * of_scores.numel(), walked, *parts)
        return of_scores, of_gate, of_start, None, None, None


def _walked(
    spread: float, gate: Tensor, start: Tensor, lengths: Tensor, weights: Tensor, focus: Tensor
) -> Walked:
    arrays = [part.numpy() for part in (gate, start, lengths, weights, focus)]
    return Walked(*arrays[:3], spread, *arrays[3:])
