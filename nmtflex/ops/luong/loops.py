"""The loops of Luong's decoder on the CPU, compiled by numba; ``cpu`` calls them.

A thread takes its sentences through all steps, at most ``ROWS`` of them at a time, so threads do
not wait for each other, and what a step makes stays in the cache. Products run in tiles (see
``nmtflex.ops.linear``). Each sentence is computed in the same order whatever is beside it.

Legend: B sentences, T steps, S source positions, D units of the cell and of its output vectors, A
units of a key, H units of a value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.attend.loops import (
    add_row,
    add_rows,
    backward_punish,
    backward_softmax,
    dot,
    mean_position,
    punish,
    score,
    softmax,
)
from nmtflex.ops.compiled import SUMS, compiled, entry
from nmtflex.ops.dropout.loops import drop_share
from nmtflex.ops.elementary import tanh
from nmtflex.ops.linear.product_loops import COLUMNS, ROWS, Entering, enter, multiply, space
from nmtflex.ops.luong.gate_loops import Gate, Gated, GateGrads, backward_gate, open_gate, window
from nmtflex.ops.recurrent.loops import Made as Cell
from nmtflex.ops.recurrent.loops import backward_rows, lstm_rows


class Given(NamedTuple):
    """What the steps read, beside weights."""

    gates: Array  # [T, B, 4 D], the words' side of the cell's gates
    keys: Array  # [B, S, A]
    values: Array  # [B, S, H]
    lengths: Whole  # [B]
    v: Array  # [A] of the additive score, or of length 0
    bias: Array  # [A] of its queries, or of length 0
    dropout: float
    seed: int  # of the dropout


class Weights(NamedTuple):
    """Weights laid out for tiles, flat; in the backward pass those of the transposed ones."""

    joint: Array  # [4 D, 2 D], of the last output and h
    attentional: Array  # [D, D + H], of h and the context
    query: Array  # [A, D], or of length 0: h itself is the query
    gate: Array  # [G, D], or of length 0: there is no penalty


class Made(NamedTuple):
    """What the steps make."""

    entering: Array  # [T + 1, B, 2 D], the last output after dropout, and h before the step
    gates: Array  # [T, B, 4 D], i, f, g and o
    c: Array  # [T + 1, B, D], before the step
    joined: Array  # [T, B, D + H], h and the context
    queries: Array  # [T, B, A]
    weights: Array  # [T, B, S], 0 at padding and outside of a window
    outputs: Array  # [T, B, D]


class Grads(NamedTuple):
    """Gradients; all but the first are made."""

    outputs: Array  # [T, B, D]
    gates: Array  # [T, B, 4 D], before sigmoid and tanh
    attentional: Array  # [T, B, D], before tanh
    queries: Array  # [T, B, A]
    keys: Array  # [B, S, A], added to
    values: Array  # [B, S, H], added to
    v: Array  # [B, A], a summand of each sentence, added to
    entering: Array  # [B, 2 D], of the step after, at last of the first step; zeros at first
    c: Array  # [B, D], alike


class Room(NamedTuple):
    """Where a thread works."""

    entering: Entering
    products: Array  # [ROWS, O], of the widest product
    h: Array  # [ROWS, D], a gradient
    scores: Array  # [S], a gradient


@entry(parallel=True)
def forward(
    given: Given, gate: Gate, weights: Weights, made: Made, gated: Gated, shares: Whole
) -> None:
    """Make all steps.

    Args:
        given: What the steps read.
        gate: Of a penalty, if there is one.
        weights: Laid out.
        made: ``entering`` and ``c`` begin with the state before the first step; the rest is made.
        gated: ``focus`` begins with that before the first step; the rest is made.
        shares: Where the sentences of each thread begin and end.
    """
    for share in prange(shares.shape[0] - 1):
        room = _room(made, gated)
        for first in range(shares[share], shares[share + 1], ROWS):
            last = min(first + ROWS, shares[share + 1])
            for t in range(made.outputs.shape[0]):
                _advance(given, weights, made, (gate, gated), room, t, first, last)
                for n in range(first, last):
                    _attend(given, made, gate, gated, t, n)
                _predict(given, weights, made, room, t, first, last)


@compiled(**SUMS)
def _room(made: Made, gated: Gated) -> Room:
    gates, joined, hidden = made.gates.shape[2], made.joined.shape[2], gated.hidden.shape[2]
    widest = max(made.entering.shape[2], joined, gates, made.queries.shape[2], hidden)
    return Room(
        space(widest, made.gates[0, 0], made.gates),
        np.empty((ROWS, widest + COLUMNS), made.gates.dtype),
        np.empty((ROWS, made.c.shape[2]), made.gates.dtype),
        np.empty(made.weights.shape[2], made.gates.dtype),
    )


@compiled(**SUMS)
def _multiply(rows: Array, weight: Array, room: Room) -> None:
    """Multiply rows [M, C] by a weight [O, C]; the products are the first O of ``room``."""
    count, width = rows.shape
    for m in range(count):
        enter(rows[m], room.entering, m)
    scales = room.products[0, : len(weight) // width]  # not read in float32, but for their number
    multiply(weight, 0, scales, room.entering, width, room.products[:count])


@compiled(**SUMS)
def _advance(
    given: Given,
    weights: Weights,
    made: Made,
    penalty: tuple[Gate, Gated],
    room: Room,
    t: int,
    first: int,
    last: int,
) -> None:
    """Advance the cell, and make the queries and the strength of the penalty."""
    size, (gate, gated) = made.c.shape[2], penalty
    _multiply(made.entering[t, first:last], weights.joint, room)
    h = made.joined[t, first:last, :size]
    lstm_rows(
        room.products,
        given.gates[t, first:last],
        made.c[t, first:last],
        made.gates[t, first:last],
        h,
        made.c[t + 1, first:last],
        0,
        last - first,
    )
    made.entering[t + 1, first:last, size:] = h
    if weights.query.shape[0]:
        _multiply(h, weights.query, room)
        for m in range(last - first):
            query = made.queries[t, first + m]
            for a in range(query.shape[0]):
                query[a] = room.products[m, a] + given.bias[a]
    else:
        made.queries[t, first:last] = h
    if weights.gate.shape[0]:
        _multiply(h, weights.gate, room)
        for m in range(last - first):
            open_gate(gate, room.products[m], gated, t, first + m)


@compiled(**SUMS)
def _attend(given: Given, made: Made, gate: Gate, gated: Gated, t: int, n: int) -> None:
    size, punished = made.c.shape[2], gated.hidden.shape[2] > 0
    first, last = window(gate, gated, t, n, given.lengths[n])
    made.weights[t, n, :first] = 0
    made.weights[t, n, last:] = 0
    weights = made.weights[t, n, first:last]
    score(made.queries[t, n], given.v, given.keys[n, first:last], weights)
    if punished:
        punish(weights, first, gated.strength[t, n], gated.focus[t, n], gate.spread)
    softmax(weights)
    if punished:
        gated.focus[t + 1, n] = mean_position(weights, first)
    context = made.joined[t, n, size:]
    context[:] = 0
    add_rows(weights, given.values[n, first:last], context)


@compiled(**SUMS)
def _predict(
    given: Given, weights: Weights, made: Made, room: Room, t: int, first: int, last: int
) -> None:
    """Make the output vectors, and feed them into the next step."""
    size = made.c.shape[2]
    _multiply(made.joined[t, first:last], weights.attentional, room)
    for n in range(first, last):
        output, fed = made.outputs[t, n], made.entering[t + 1, n, :size]
        for d in range(size):
            output[d] = tanh(room.products[n - first, d])
        fed[:] = output
        _drop(given, made, t, n, fed)


@compiled(**SUMS)
def _drop(given: Given, made: Made, t: int, n: int, row: Array) -> None:
    """Drop a share of a row [D], part of those of all steps and sentences [T, B, D]."""
    if given.dropout == 0:
        return
    place = (t * made.outputs.shape[1] + n) * row.shape[0]
    drop_share(row, row, given.dropout, given.seed, 0, row.shape[0], place)


@entry(parallel=True)
def backward(
    given: Given,
    gate: Gate,
    weights: Weights,
    made: Made,
    gated: Gated,
    grads: Grads,
    gate_grads: GateGrads,
    shares: Whole,
) -> None:
    """The backward pass of ``forward``, without the gradients of the weights.

    Args:
        given: As in ``forward``.
        gate: As in ``forward``.
        weights: The transposed ones, laid out.
        made: From ``forward``.
        gated: From ``forward``.
        grads: Those that arrive, and those that are made.
        gate_grads: Alike.
        shares: As in ``forward``.
    """
    for share in prange(shares.shape[0] - 1):
        room = _room(made, gated)
        penalty = gate, gated, gate_grads
        for first in range(shares[share], shares[share + 1], ROWS):
            last = min(first + ROWS, shares[share + 1])
            for t in range(made.outputs.shape[0] - 1, -1, -1):
                _backward_predict(given, weights, made, grads, room, t, first, last)
                for n in range(first, last):
                    _backward_attend(given, made, grads, penalty, room, t, n, n - first)
                _backward_advance(weights, made, grads, gate_grads, room, t, first, last)


@compiled(**SUMS)
def _backward_predict(
    given: Given,
    weights: Weights,
    made: Made,
    grads: Grads,
    room: Room,
    t: int,
    first: int,
    last: int,
) -> None:
    """Leave the gradient of h in ``room.h``, and that of the context in ``room.products``."""
    size, one = made.c.shape[2], grads.c.dtype.type(1)
    for n in range(first, last):
        fed, grad, output = grads.entering[n, :size], grads.attentional[t, n], made.outputs[t, n]
        _drop(given, made, t, n, fed)
        for d in range(size):
            grad[d] = (grads.outputs[t, n, d] + fed[d]) * (one - output[d] * output[d])
    _multiply(grads.attentional[t, first:last], weights.attentional, room)
    for n in range(first, last):
        h = room.h[n - first]
        for d in range(size):
            h[d] = room.products[n - first, d] + grads.entering[n, size + d]


@compiled(**SUMS)
def _backward_attend(
    given: Given,
    made: Made,
    grads: Grads,
    penalty: tuple[Gate, Gated, GateGrads],
    room: Room,
    t: int,
    n: int,
    row: int,
) -> None:
    """The backward pass of attention, keys and values with it: one walk over the source.

    The gradient of the context is in a row of ``room.products``.
    """
    gate, gated, gate_grads = penalty
    size, punished = made.c.shape[2], gated.hidden.shape[2] > 0
    first, last = window(gate, gated, t, n, given.lengths[n])
    weights, scores = made.weights[t, n, first:last], room.scores[: last - first]
    values, of_values = given.values[n, first:last], grads.values[n, first:last]
    context = room.products[row, size : made.joined.shape[2]]
    for i in range(last - first):
        scores[i] = dot(context, values[i])
        add_row(weights[i], context, of_values[i])
    if punished:
        focus = gate_grads.focus[n]
        for i in range(last - first):
            scores[i] += focus * type(focus)(first + i)
    backward_softmax(weights, scores, scores.dtype.type(0))
    if punished:
        grad, gate_grads.focus[n] = backward_punish(
            scores, first, gated.strength[t, n], gated.focus[t, n], gate.spread
        )
        backward_gate(gate, gated, gate_grads, grad, t, n)
    grads.queries[t, n] = 0
    for i in range(last - first):
        if scores[i] != 0:  # as it is after a sentence's end, and far from the focus
            _backward_score(given, made, grads, scores[i], t, n, first + i)


@compiled(**SUMS)
def _backward_score(
    given: Given, made: Made, grads: Grads, grad: float, t: int, n: int, position: int
) -> None:
    """Add the gradients of one score to those of query, key and v."""
    query, of_query, v, of_v = made.queries[t, n], grads.queries[t, n], given.v, grads.v[n]
    key, of_key, one = given.keys[n, position], grads.keys[n, position], v.dtype.type(1)
    if not v.shape[0]:
        add_row(grad, key, of_query)
        add_row(grad, query, of_key)
        return
    for a in range(v.shape[0]):
        t_a = tanh(query[a] + key[a])
        inner = grad * v[a] * (one - t_a * t_a)
        of_v[a] += grad * t_a
        of_query[a] += inner
        of_key[a] += inner


@compiled(**SUMS)
def _backward_advance(
    weights: Weights,
    made: Made,
    grads: Grads,
    gate_grads: GateGrads,
    room: Room,
    t: int,
    first: int,
    last: int,
) -> None:
    """From the gradients of h, of queries and gates to those of what has entered the cell."""
    size, count = made.c.shape[2], last - first
    queries = grads.queries[t, first:last]
    if weights.query.shape[0]:
        _multiply(queries, weights.query, room)
        for m in range(count):
            add_row(room.h.dtype.type(1), room.products[m, :size], room.h[m])
    else:
        for m in range(count):
            add_row(room.h.dtype.type(1), queries[m], room.h[m])
    if weights.gate.shape[0]:
        _multiply(gate_grads.hidden[t, first:last], weights.gate, room)
        for m in range(count):
            add_row(room.h.dtype.type(1), room.products[m, :size], room.h[m])
    c = grads.c[first:last]
    cell = Cell(made.gates[t, first:last], made.c[t, first:last], made.c[t + 1, first:last])
    backward_rows(cell, room.h, c, grads.gates[t, first:last], c, 0, count)
    _multiply(grads.gates[t, first:last], weights.joint, room)
    for m in range(count):
        grads.entering[first + m] = room.products[m, : 2 * size]
