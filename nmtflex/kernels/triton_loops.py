"""The Triton kernels of windowed attention; ``cuda`` starts them.

Legend as in ``cuda``. Tensors are contiguous; a window that leaves the memory is cut off. Arguments
have no types, since Triton would take them for code.
"""

from __future__ import annotations

import triton
import triton.language as tl


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
        place = keys + s[:, None] * size + a[None, :]
        k = tl.load(place, mask=inside[:, None] & real[None, :], other=0.0).to(tl.float32)
        if additive:
            part = tl.load(v + a, mask=real, other=0.0).to(tl.float32)
            tanh = 2 * tl.sigmoid(2 * (q[None, :] + k)) - 1
            score += tl.sum(part[None, :] * tanh, axis=1)
        else:
            score += tl.sum(q[None, :] * k, axis=1)
    return score


tile_scores = triton.jit(_tile_scores)


def _weigh(  # type: ignore[no-untyped-def]  # noqa: PLR0913
    query,
    v,
    keys,
    rows,
    start,
    stop,
    length,
    size,
    gate,
    focus,
    centre,
    penalty_spread,
    damping_spread,
    weights,
    new_focus,
    additive: tl.constexpr,
    punished: tl.constexpr,
    damped: tl.constexpr,
    positions: tl.constexpr,
    units: tl.constexpr,
):
    """Write the weights of one hypothesis to its row of [N, S], and its new focus."""
    n = tl.program_id(0).to(tl.int64)
    first = tl.maximum(tl.load(start + n), 0)
    last = tl.minimum(tl.load(stop + n), length)
    memory = keys + tl.load(rows + n).to(tl.int64) * length * size
    mine = weights + n * length
    tile = tl.arange(0, positions)

    # Scores, their maximum, and the sum of exponentials relative to it as it grows.
    greatest = float("-inf")
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
        tl.store(mine + s, score, mask=inside)
        higher = tl.maximum(greatest, tl.max(score, axis=0))
        total = total * tl.exp(greatest - higher) + tl.sum(tl.exp(score - higher), axis=0)
        greatest = higher

    tl.debug_barrier()  # the scores are read back by other threads than wrote them
    mean = 0.0
    for begin in range(first, last, positions):
        s = begin + tile
        inside = s < last
        weight = tl.exp(tl.load(mine + s, mask=inside, other=float("-inf")) - greatest) / total
        if damped:
            away = s.to(tl.float32) - tl.load(centre + n)
            weight *= tl.exp(-away * away / damping_spread)
        tl.store(mine + s, weight, mask=inside)
        mean += tl.sum(weight * s.to(tl.float32), axis=0)
    tl.store(new_focus + n, mean)


def _add_up(  # type: ignore[no-untyped-def]  # noqa: PLR0913
    weights,
    values,
    rows,
    start,
    stop,
    length,
    size,
    context,
    positions: tl.constexpr,
    units: tl.constexpr,
):
    """Write some units of the context of one hypothesis: the sum of weights times values."""
    n = tl.program_id(0).to(tl.int64)
    first = tl.maximum(tl.load(start + n), 0)
    last = tl.minimum(tl.load(stop + n), length)
    memory = values + tl.load(rows + n).to(tl.int64) * length * size
    tile = tl.arange(0, positions)
    unit = tl.program_id(1) * units + tl.arange(0, units)
    real = unit < size
    total = tl.zeros([units], tl.float32)
    for begin in range(first, last, positions):
        s = begin + tile
        inside = s < last
        weight = tl.load(weights + n * length + s, mask=inside, other=0.0)
        value = tl.load(
            memory + s[:, None] * size + unit[None, :],
            mask=inside[:, None] & real[None, :],
            other=0.0,
        ).to(tl.float32)
        total += tl.sum(weight[:, None] * value, axis=0)
    tl.store(context + n * size + unit, total.to(context.dtype.element_ty), mask=real)


weigh = triton.jit(_weigh)
add_up = triton.jit(_add_up)
