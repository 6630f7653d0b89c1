"""The Triton kernels of the focus's walk, forward and backward; ``cuda`` starts them.

A program walks through the steps of one sentence, and reads each step's positions in blocks.
Tensors are contiguous. Legend as in ``nmtflex.ops.sequence``. Arguments have no types, since Triton
would take them for code.
"""

from __future__ import annotations

import triton
import triton.language as tl

# Their values change from batch to batch: a kernel compiled for one of them would be of no use.
CHANGING = ["steps", "length"]


def _punished(  # type: ignore[no-untyped-def]  # noqa: PLR0913
    scores, begin, end, gate, p, spread, tau, windowed: tl.constexpr, part_size: tl.constexpr
):
    """Return the scores of a block of positions less the penalty, -inf outside of the window.

    A window is what lies below tau and the position nearest to p, which is the first to lie below.
    Rounded as on the CPU, so that the same positions do.
    """
    s = begin + tl.arange(0, part_size)
    inside = s < end
    away = s.to(tl.float32) - p
    penalty = tl.div_rn(gate * (away * away), spread)
    if windowed:
        nearest = tl.minimum(tl.maximum(tl.ceil(p - 0.5), 0.0), (end - 1).to(tl.float32))
        # A NaN of broken weights is not shut out, so that the context shows it.
        inside &= ((penalty >= tau) == 0) | (s.to(tl.float32) == nearest)
    score = tl.load(scores + s, mask=inside, other=0.0).to(tl.float32) - penalty
    return tl.where(inside, score, float("-inf")), s, inside


punished = triton.jit(_punished)


def _walk(  # type: ignore[no-untyped-def]  # noqa: PLR0913
    scores,
    gate,
    first,
    lengths,
    spread,
    tau,
    steps,
    length,
    weights,
    focus,
    windowed: tl.constexpr,
    part_size: tl.constexpr,
):
    """Write the weights of each step to a row of [B, T, S], and its focus to [B, T]."""
    row = tl.program_id(0).to(tl.int64)
    end = tl.load(lengths + row).to(tl.int32)
    p = tl.load(first + row)
    for step in range(steps):
        n = row * steps + step
        g = tl.load(gate + n)
        high = float("-inf")
        total = 0.0
        for begin in range(0, end, part_size):
            score, _, _ = punished(
                scores + n * length, begin, end, g, p, spread, tau, windowed, part_size
            )
            higher = tl.maximum(high, tl.max(score, axis=0))
            safe = tl.where(higher == float("-inf"), 0.0, higher)  # of a block outside
            total = total * tl.exp(high - safe) + tl.sum(tl.exp(score - safe), axis=0)
            high = higher
        mean = 0.0
        for begin in range(0, length, part_size):
            score, s, inside = punished(
                scores + n * length, begin, end, g, p, spread, tau, windowed, part_size
            )
            weight = tl.where(inside, tl.exp(score - high) / total, 0.0)
            tl.store(weights + n * length + s, weight, mask=s < length)
            mean += tl.sum(weight * s.to(tl.float32), axis=0)
        p = mean
        tl.store(focus + n, p)


def _arriving(  # type: ignore[no-untyped-def]
    weights, grad_weights, begin, end, to_focus, part_size: tl.constexpr
):
    """Return a block of a step's weights and their gradient, which is 0 where a weight is."""
    s = begin + tl.arange(0, part_size)
    weight = tl.load(weights + s, mask=s < end, other=0.0)
    seen = weight != 0  # outside of a window anything may arrive
    grad = tl.load(grad_weights + s, mask=seen, other=0.0) + to_focus * s.to(tl.float32)
    return weight, tl.where(seen, grad, 0.0), s


arriving = triton.jit(_arriving)


def _backward_walk(  # type: ignore[no-untyped-def]  # noqa: PLR0913
    gate,
    first,
    lengths,
    spread,
    steps,
    length,
    weights,
    focus,
    grad_weights,
    grad_focus,
    of_scores,
    of_gate,
    of_first,
    part_size: tl.constexpr,
):
    """Write the gradients of scores [B, T, S], gates [B, T] and the first focus [B]."""
    row = tl.program_id(0).to(tl.int64)
    end = tl.load(lengths + row).to(tl.int32)
    carried = 0.0
    for back in range(steps):
        step = steps - 1 - back
        n = row * steps + step
        to_focus = tl.load(grad_focus + n) + carried
        mean = 0.0
        for begin in range(0, end, part_size):
            weight, grad, _ = arriving(
                weights + n * length, grad_weights + n * length, begin, end, to_focus, part_size
            )
            mean += tl.sum(weight * grad, axis=0)
        g = tl.load(gate + n)
        p = tl.load(first + row)
        if step > 0:
            p = tl.load(focus + n - 1)
        to_gate = 0.0
        to_before = 0.0
        for begin in range(0, length, part_size):
            weight, grad, s = arriving(
                weights + n * length, grad_weights + n * length, begin, end, to_focus, part_size
            )
            grad = weight * (grad - mean)
            tl.store(of_scores + n * length + s, grad, mask=s < length)
            away = s.to(tl.float32) - p
            to_gate -= tl.sum(grad * away * away, axis=0)
            to_before += tl.sum(grad * away, axis=0)
        tl.store(of_gate + n, to_gate / spread)
        carried = 2 * g * to_before / spread
    tl.store(of_first + row, carried)


walk = triton.jit(_walk, do_not_specialize=CHANGING)
backward_walk = triton.jit(_backward_walk, do_not_specialize=CHANGING)
