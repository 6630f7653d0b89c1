"""Scores, the walk of the focus and contexts in loops on the CPU.

Everything runs in float32, or in float64 for float64 keys, scores or values. Legend as in
``nmtflex.ops.sequence``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmtflex.ops.sequence import loops
from nmtflex.ops.sequence.loops import Scored, Walked
from nmtflex.ops.tensors import held, precise
from nmtflex.ops.threads import run_rows

UNITS = 8  # of a key, that take no longer than one weight of a walk


def scores(query: Tensor, keys: Tensor, lengths: Tensor, v: Tensor | None) -> Tensor:
    """Score queries against keys; see ``nmtflex.ops.sequence.scores``."""
    exact, lengths = precise(keys.dtype), lengths.contiguous()
    query, keys = query.to(exact).contiguous(), keys.to(exact).contiguous()
    if v is None:
        return _Dot.apply(query, keys, lengths)  # type: ignore[no-untyped-call]
    return _Additive.apply(query, keys, lengths, v.to(exact).contiguous())  # type: ignore[no-untyped-call]


def walk(
    scores: Tensor, gate: Tensor, focus: Tensor, lengths: Tensor, sigma: float, tau: float
) -> tuple[Tensor, Tensor]:
    """Weigh step by step; see ``nmtflex.ops.sequence.walk``."""
    exact = precise(scores.dtype)
    parts = (part.to(exact).contiguous() for part in (scores, gate, focus))
    return _Walk.apply(*parts, lengths.contiguous(), 2 * sigma**2, held(tau, exact))  # type: ignore[no-untyped-call]


def contexts(weights: Tensor, values: Tensor, lengths: Tensor) -> Tensor:
    """Sum values; see ``nmtflex.ops.sequence.contexts``."""
    exact = precise(values.dtype)
    parts = (part.to(exact).contiguous() for part in (weights, values))
    made = _Contexts.apply(*parts, lengths.contiguous())  # type: ignore[no-untyped-call]
    return made.to(values.dtype)


class _Additive(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, lengths: Tensor, v: Tensor) -> Tensor:
        """Return v . tanh(q + k)."""
        ctx.save_for_backward(query, keys, v, lengths)
        return _scored(query, keys, v, lengths)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of query, keys and v."""
        query, keys, v, _ = ctx.saved_tensors
        of_query, of_keys = torch.zeros_like(query), torch.zeros_like(keys)
        of_v = v.new_zeros(len(query), len(v))
        scored = Scored(*(tensor.numpy() for tensor in ctx.saved_tensors))
        parts = (part.numpy() for part in (grads.contiguous(), of_query, of_keys, of_v))
        run_rows(loops.backward_scores, len(query), grads.numel() * len(v), scored, *parts)
        return of_query, of_keys, None, of_v.sum(0)


class _Dot(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, lengths: Tensor) -> Tensor:
        """Return q . k."""
        ctx.save_for_backward(query, keys, lengths)
        return _scored(query, keys, query[:0, 0, 0], lengths)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of query and keys."""
        query, keys, lengths = ctx.saved_tensors
        grads = grads.contiguous()
        return _summed(grads, keys, lengths), _summed_over_steps(grads, query, lengths), None


class _Contexts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, values: Tensor, lengths: Tensor) -> Tensor:
        """Return the weighted sums."""
        ctx.save_for_backward(weights, values, lengths)
        return _summed(weights, values, lengths)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grads: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of weights and values."""
        weights, values, lengths = ctx.saved_tensors
        grads = grads.contiguous()
        of_weights = _scored(grads, values, grads[:0, 0, 0], lengths)
        return of_weights, _summed_over_steps(weights, grads, lengths), None


def _scored(query: Tensor, keys: Tensor, v: Tensor, lengths: Tensor) -> Tensor:
    """Return scores [B, T, S], dot products where v has length 0."""
    made = query.new_zeros(*query.shape[:2], keys.shape[1])
    scored = Scored(*(part.numpy() for part in (query, keys, v, lengths)))
    queries = query.shape[0] * query.shape[1]
    run_rows(loops.scores, queries, made.numel() * query.shape[2], scored, made.numpy())
    return made


def _summed(weights: Tensor, memory: Tensor, lengths: Tensor) -> Tensor:
    """Return the weighted sums [B, T, D] of a memory [B, S, D]."""
    made = memory.new_zeros(*weights.shape[:2], memory.shape[2])
    queries = weights.shape[0] * weights.shape[1]
    parts = (part.numpy() for part in (weights, memory, lengths, made))
    run_rows(loops.sums, queries, weights.numel() * memory.shape[2], *parts)
    return made


def _summed_over_steps(weights: Tensor, queries: Tensor, lengths: Tensor) -> Tensor:
    """Return the weighted sums [B, S, D] of queries [B, T, D]."""
    made = queries.new_zeros(len(weights), weights.shape[2], queries.shape[2])
    parts = (part.numpy() for part in (weights, queries, lengths, made))
    run_rows(loops.sums_over_steps, len(weights), weights.numel() * queries.shape[2], *parts)
    return made


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
        parts = (gate, start, lengths, weights, focus)
        walked = Walked._make([*(part.numpy() for part in parts), spread])
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
        walked = Walked._make([*(part.numpy() for part in ctx.saved_tensors), ctx.spread])
        run_rows(loops.backward_walk, len(gate), UNITS * of_scores.numel(), walked, *parts)
        return of_scores, of_gate, of_start, None, None, None
