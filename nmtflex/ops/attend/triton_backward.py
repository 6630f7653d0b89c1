"""The Triton kernels of windowed attention, backward; ``cuda`` and ``cuda_gather`` start them.

Every number is the sum of one program, taken in a fixed order: results are the same at every run.
Legend as in ``triton_loops``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from nmtflex.ops.attend.triton_loops import CHANGING, rows_at, span, squashed


def _of_weights(  # type: ignore[no-untyped-def]  # noqa: PLR0913
    grad_context,
    grad_focus,
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
    grads,
    means,
    of_centre,
    damped: tl.constexpr,
    part_size: tl.constexpr,
    positions: tl.constexpr,
    units: tl.constexpr,
):
    """Write the gradient of the softmax in one part of a window to a row of [N, S].

    Also write its mean under the softmax and the gradient of the centre, summands [N, C] each.
    """
    n = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    first, last = span(start, stop, n, length)
    first += part * part_size
    last = tl.minimum(last, first + part_size)
    memory = values + tl.load(rows + n).to(tl.int64) * length * size
    tile = tl.arange(0, positions)
    mean = 0.0
    to_centre = 0.0
    for begin in range(first, last, positions):
        s = begin + tile
        inside = s < last
        grad = tl.load(grad_focus + n) * s.to(tl.float32)
        for block in range(0, size, units):
            unit = block + tl.arange(0, units)
            real = unit < size
            arriving = tl.load(grad_context + n * size + unit, mask=real, other=0.0)
            value = rows_at(memory, s, inside, unit, real, size)
            grad += tl.sum(arriving.to(tl.float32)[None, :] * value, axis=1)
        weight = tl.load(plain + n * length + s, mask=inside, other=0.0)
        if damped:
            away = s.to(tl.float32) - tl.load(centre + n)
            grad *= tl.exp(-away * away / damping_spread)
            to_centre += tl.sum(grad * weight * away, axis=0)
        mean += tl.sum(grad * weight, axis=0)
        tl.store(grads + n * length + s, grad, mask=inside)
    tl.store(means + n * parts + part, mean)
    if damped:
        tl.store(of_centre + n * parts + part, 2 * to_centre / damping_spread)


def _of_scores(  # type: ignore[no-untyped-def]  # noqa: PLR0913
    start,
    stop,
    gate,
    focus,
    penalty_spread,
    length,
    parts,
    plain,
    grads,
    means,
    grad_log_sum,
    scores,
    of_gate,
    of_focus,
    punished: tl.constexpr,
    part_size: tl.constexpr,
    positions: tl.constexpr,
):
    """Write the gradient of the scores in one part of a window to a row of [N, S].

    Also write summands [N, C] of the gradients of gate and focus.
    """
    n = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    first, last = span(start, stop, n, length)
    mean = -tl.load(grad_log_sum + n)
    for other in range(tl.cdiv(last - first, part_size)):
        mean += tl.load(means + n * parts + other)
    first += part * part_size
    last = tl.minimum(last, first + part_size)
    tile = tl.arange(0, positions)
    to_gate = 0.0
    to_focus = 0.0
    for begin in range(first, last, positions):
        s = begin + tile
        inside = s < last
        place = n * length + s
        grad = tl.load(grads + place, mask=inside, other=0.0) - mean
        grad *= tl.load(plain + place, mask=inside, other=0.0)
        tl.store(scores + place, grad, mask=inside)
        if punished:
            away = s.to(tl.float32) - tl.load(focus + n)
            to_gate -= tl.sum(grad * away * away, axis=0)
            to_focus += tl.sum(grad * away, axis=0)
    if punished:
        tl.store(of_gate + n * parts + part, to_gate / penalty_spread)
        to_focus *= 2 * tl.load(gate + n) / penalty_spread
        tl.store(of_focus + n * parts + part, to_focus)


def _of_query(  # type: ignore[no-untyped-def]  # noqa: PLR0913
    scores,
    query,
    v,
    keys,
    rows,
    start,
    stop,
    length,
    size,
    parts,
    of_query,
    of_v,
    additive: tl.constexpr,
    part_size: tl.constexpr,
    positions: tl.constexpr,
    units: tl.constexpr,
):
    """Write what one part of a window adds to the gradients of some units of query and v."""
    n = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    first, last = span(start, stop, n, length)
    first += part * part_size
    last = tl.minimum(last, first + part_size)
    memory = keys + tl.load(rows + n).to(tl.int64) * length * size
    a = tl.program_id(2) * units + tl.arange(0, units)
    real = a < size
    q = tl.load(query + n * size + a, mask=real, other=0.0).to(tl.float32)
    tile = tl.arange(0, positions)
    to_query = tl.zeros([units], tl.float32)
    to_v = tl.zeros([units], tl.float32)
    for begin in range(first, last, positions):
        s = begin + tile
        inside = s < last
        grad = tl.load(scores + n * length + s, mask=inside, other=0.0)
        k = rows_at(memory, s, inside, a, real, size)
        if additive:
            t = squashed(q[None, :] + k)
            to_v += tl.sum(grad[:, None] * t, axis=0)
            to_query += tl.sum(grad[:, None] * (1 - t * t), axis=0)
        else:
            to_query += tl.sum(grad[:, None] * k, axis=0)
    # A part beyond the window is not read again: nothing is written for it.
    there = real & ((first < last) | (part == 0))
    place = (n * parts + part) * size + a
    if additive:
        to_query *= tl.load(v + a, mask=real, other=0.0).to(tl.float32)
        tl.store(of_v + place, to_v, mask=there)
    tl.store(of_query + place, to_query, mask=there)


def _of_values(  # type: ignore[no-untyped-def]  # noqa: PLR0913
    weights,
    grad_context,
    start,
    stop,
    order,
    ends,
    length,
    size,
    of_values,
    positions: tl.constexpr,
    units: tl.constexpr,
):
    """Write the gradient of some units of the values at some positions of a sentence."""
    row = tl.program_id(0).to(tl.int64)
    begin = tl.program_id(1) * positions
    s = begin + tl.arange(0, positions)
    unit = tl.program_id(2) * units + tl.arange(0, units)
    real = unit < size
    total = tl.zeros([positions, units], tl.float32)
    for place in range(tl.load(ends + row), tl.load(ends + row + 1)):
        n = tl.load(order + place)
        first, last = span(start, stop, n, length)
        if (first < begin + positions) & (begin < last):
            inside = (first <= s) & (s < last)
            weight = tl.load(weights + n * length + s, mask=inside, other=0.0)
            arriving = tl.load(grad_context + n * size + unit, mask=real, other=0.0)
            total += weight[:, None] * arriving.to(tl.float32)[None, :]
    place = of_values + row * length * size + s[:, None] * size + unit[None, :]
    tl.store(place, total, mask=(s < length)[:, None] & real[None, :])


def _of_keys(  # type: ignore[no-untyped-def]  # noqa: PLR0913
    scores,
    query,
    v,
    keys,
    start,
    stop,
    order,
    ends,
    length,
    size,
    of_keys,
    additive: tl.constexpr,
    positions: tl.constexpr,
    units: tl.constexpr,
):
    """Write the gradient of some units of the keys at some positions of a sentence."""
    row = tl.program_id(0).to(tl.int64)
    begin = tl.program_id(1) * positions
    s = begin + tl.arange(0, positions)
    a = tl.program_id(2) * units + tl.arange(0, units)
    real = a < size
    k = rows_at(keys + row * length * size, s, s < length, a, real, size)
    total = tl.zeros([positions, units], tl.float32)
    for place in range(tl.load(ends + row), tl.load(ends + row + 1)):
        n = tl.load(order + place)
        first, last = span(start, stop, n, length)
        if (first < begin + positions) & (begin < last):
            inside = (first <= s) & (s < last)
            grad = tl.load(scores + n * length + s, mask=inside, other=0.0)
            q = tl.load(query + n * size + a, mask=real, other=0.0).to(tl.float32)
            if additive:
                t = squashed(q[None, :] + k)
                # A key that is not read may be no number, which times 0 is none either.
                total += tl.where(inside[:, None], grad[:, None] * (1 - t * t), 0.0)
            else:
                total += grad[:, None] * q[None, :]
    if additive:
        total *= tl.load(v + a, mask=real, other=0.0).to(tl.float32)[None, :]
    place = of_keys + row * length * size + s[:, None] * size + a[None, :]
    tl.store(place, total, mask=(s < length)[:, None] & real[None, :])


of_weights = triton.jit(_of_weights, do_not_specialize=CHANGING)
of_scores = triton.jit(_of_scores, do_not_specialize=CHANGING)
of_query = triton.jit(_of_query, do_not_specialize=CHANGING)
of_values = triton.jit(_of_values, do_not_specialize=["length"])
of_keys = triton.jit(_of_keys, do_not_specialize=["length"])
