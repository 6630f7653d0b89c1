"""The Triton kernels of windowed attention, forward; ``cuda`` starts them.

A window is cut into parts, and a program computes one part of one hypothesis: a long source keeps
the whole GPU busy even for a single sentence. Legend as in ``cuda``, and C parts of the longest
window. Tensors are contiguous; a window that leaves the memory is cut off. Arguments have no types,
since Triton would take them for code.
"""

from __future__ import annotations

import triton
import triton.language as tl

# Their values change from batch to batch: a kernel compiled for one of them would be of no use.
CHANGING = ["length", "parts"]


def _span(start, stop, n, length):  # type: ignore[no-untyped-def]
    """Return the first position of the window of hypothesis n, and its end."""
    return tl.maximum(tl.load(start + n), 0), tl.minimum(tl.load(stop + n), length)


span = triton.jit(_span)


def _squashed(x):  # type: ignore[no-untyped-def]
    """Return the hyperbolic tangent."""
    return 2 * tl.sigmoid(2 * x) - 1


squashed = triton.jit(_squashed)


def _rows_at(memory, s, inside, unit, real, size):  # type: ignore[no-untyped-def]
    """Return a tile [P, U] of a memory [S, size] in float32, zeros beyond its edges."""
    place = memory + s[:, None] * size + unit[None, :]
    return tl.load(place, mask=inside[:, None] & real[None, :], other=0.0).to(tl.float32)


rows_at = triton.jit(_rows_at)


def _tile_scores(  # type: ignore[no-untyped-def]  # noqa: PLR0913
    query,
    v,
    keys,
    s,
    inside,
    size,
    additive: tl.constexpr,
    positions: tl.constexpr,
    units: tl.constexpr,
):
    """Return the scores of a query and the positions s of a sentence that are inside."""
    score = tl.zeros([positions], tl.float32)
    for block in range(0, size, units):
        a = block + tl.arange(0, units)
        real = a < size
        q = tl.load(query + a, mask=real, other=0.0).to(tl.float32)
        k = rows_at(keys, s, inside, a, real, size)
        if additive:
            factors = tl.load(v + a, mask=real, other=0.0).to(tl.float32)
            score += tl.sum(factors[None, :] * squashed(q[None, :] + k), axis=1)
        else:
            score += tl.sum(q[None, :] * k, axis=1)
    return score


tile_scores = triton.jit(_tile_scores)


def _score(  # type: ignore[no-untyped-def]  # noqa: PLR0913
    query,
    v,
    keys,
    rows,
    start,
    stop,
    gate,
    focus,
    penalty_spread,
    length,
    size,
    parts,
    scores,
    greatest,
    totals,
    additive: tl.constexpr,
    punished: tl.constexpr,
    part_size: tl.constexpr,
    positions: tl.constexpr,
    units: tl.constexpr,
):
    """Write the scores of one part of a window to a row of [N, S].

    Also write the part's greatest score and the sum of exponentials relative to it, [N, C] each.
    """
    n = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    first, last = span(start, stop, n, length)
    first += part * part_size
    last = tl.minimum(last, first + part_size)
    memory = keys + tl.load(rows + n).to(tl.int64) * length * size
    tile = tl.arange(0, positions)
    high = float("-inf")
    total = 0.0
    for begin in range(first, last, positions):
        s = begin + tile
        inside = s < last
        score = tile_scores(
            query + n * size, v, memory, s, inside, size, additive, positions, units
        )
        if punished:
            away = s.to(tl.float32) - tl.load(focus + n)
            score -= tl.load(gate + n) * away * away / penalty_spread
        score = tl.where(inside, score, float("-inf"))
        tl.store(scores + n * length + s, score, mask=inside)
        higher = tl.maximum(high, tl.max(score, axis=0))
        total = total * tl.exp(high - higher) + tl.sum(tl.exp(score - higher), axis=0)
        high = higher
    tl.store(greatest + n * parts + part, high)
    tl.store(totals + n * parts + part, total)


def _weigh(  # type: ignore[no-untyped-def]  # noqa: PLR0913
    scores,
    greatest,
    totals,
    values,
    rows,
    start,
    stop,
    centre,
    damping_spread,
    length,
    size,
    parts,
    plain,
    weights,
    context,
    focus,
    log_sum,
    damped: tl.constexpr,
    kept: tl.constexpr,
    part_size: tl.constexpr,
    positions: tl.constexpr,
    units: tl.constexpr,
):
    """Write what one part of a window adds to some units of the context, and to the focus.

    The first part writes the logarithm of the softmax's sum [N], too.
    Where they are kept, also write the softmax and the damped weights to rows of [N, S].
    """
    n = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    block = tl.program_id(2)
    first, last = span(start, stop, n, length)
    high = float("-inf")
    for other in range(tl.cdiv(last - first, part_size)):
        high = tl.maximum(high, tl.load(greatest + n * parts + other))
    total = 0.0
    for other in range(tl.cdiv(last - first, part_size)):
        lower = tl.load(greatest + n * parts + other) - high
        total += tl.load(totals + n * parts + other) * tl.exp(lower)

    first += part * part_size
    last = tl.minimum(last, first + part_size)
    memory = values + tl.load(rows + n).to(tl.int64) * length * size
    unit = block * units + tl.arange(0, units)
    real = unit < size
    tile = tl.arange(0, positions)
    added = tl.zeros([units], tl.float32)
    mean = 0.0
    for begin in range(first, last, positions):
        s = begin + tile
        inside = s < last
        place = n * length + s
        weight = tl.load(scores + place, mask=inside, other=float("-inf"))
        weight = tl.exp(weight - high) / total
        if kept:
            tl.store(plain + place, weight, mask=inside & (block == 0))
        if damped:
            away = s.to(tl.float32) - tl.load(centre + n)
            weight *= tl.exp(-away * away / damping_spread)
            if kept:
                tl.store(weights + place, weight, mask=inside & (block == 0))
        added += tl.sum(weight[:, None] * rows_at(memory, s, inside, unit, real, size), axis=0)
        mean += tl.sum(weight * s.to(tl.float32), axis=0)
    # A part beyond the window is not read again: nothing is written for it.
    there = (first < last) | (part == 0)
    place = (n * parts + part) * size + unit
    tl.store(context + place, added.to(context.dtype.element_ty), mask=real & there)
    tl.store(focus + n * parts + part, mean, mask=(block == 0) & there)
    tl.store(log_sum + n, high + tl.log(total), mask=(block == 0) & (part == 0))


def _add_parts(  # type: ignore[no-untyped-def]  # noqa: PLR0913
    added,
    start,
    stop,
    length,
    size,
    parts,
    total,
    part_size: tl.constexpr,
    units: tl.constexpr,
):
    """Write some units of a hypothesis's sum over the parts of its window: [N, C, D] to [N, D]."""
    n = tl.program_id(0).to(tl.int64)
    unit = tl.program_id(1) * units + tl.arange(0, units)
    real = unit < size
    first, last = span(start, stop, n, length)
    whole = tl.zeros([units], tl.float32)
    for part in range(tl.maximum(tl.cdiv(last - first, part_size), 1)):
        whole += tl.load(added + (n * parts + part) * size + unit, mask=real, other=0.0)
    tl.store(total + n * size + unit, whole.to(total.dtype.element_ty), mask=real)


score = triton.jit(_score, do_not_specialize=CHANGING)
weigh = triton.jit(_weigh, do_not_specialize=CHANGING)
add_parts = triton.jit(_add_parts, do_not_specialize=CHANGING)
