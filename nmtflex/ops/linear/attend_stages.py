"""Attention of all heads of a row to its sentence, as a stage; see ``stage_loops``.

Legend: M rows, K attending sublayers, h heads, A units of a head, B sentences, S source positions
or slots, U units of a network of one hidden layer, F units of what words contribute to it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.attend.loops import add_rows, damp, mean_position, punish, score, softmax
from nmtflex.ops.attend.windows import edges
from nmtflex.ops.compiled import EXACT, SUMS, compiled
from nmtflex.ops.elementary import tanh
from nmtflex.ops.recurrent.loops import sigmoid

# What is attended to: all positions; those near the last focus; those around a predicted centre,
# or around the number of the step.
WHOLE, FLEXIBLE, LOCAL_P, LOCAL_M = range(4)


class Source(NamedTuple):
    """What K sublayers attend to; the sentences of head i are from i B on."""

    keys: Array  # [K, h B, S, A], or [K, 1, S, A] where all have the same
    values: Array  # [K, h B, S, A]
    lengths: Whole  # [h B]
    rows: Whole  # [M], the sentence of each row
    heads: int  # h
    scale: np.float32  # of the scores
    reach: np.float32  # threshold of the penalty, or positions on each side of a centre
    spread: np.float32  # 2 sigma^2 of penalty or damping


class Seen(NamedTuple):
    """What K sublayers read of the step before beside the source, and what they leave."""

    words: Array  # [M, K F], what words contribute to the gates
    before: Array  # [M, K, h], the focus of the step before, or the number of the step
    after: Array  # [M, K, h], become the next ones, or the predicted centres
    gates: Array  # [M, K, h], become the gates
    windows: Whole  # [M, K, h, 2], become the first positions read, and the ends
    weights: Array  # [K, h, M, S], become the weights; S = 0 if they are not wanted


class Network(NamedTuple):
    """sigmoid(v . tanh(W q + b) + c), a gate or the place of a centre."""

    weight: Array  # [A, U], W
    inner: Array  # [U], b
    v: Array  # [U]
    outer: Array  # [1], c


class Room(NamedTuple):
    """Room for one row."""

    scores: Array  # [S], of one head
    hidden: Array  # [U], of one head
    past: Array  # [h, T], weights of the steps so far


class Focus(NamedTuple):
    """Where a head looks."""

    start: np.int64
    stop: np.int64
    gate: np.floating
    centre: np.floating


@compiled(**SUMS)
def attend(
    kind: int,
    place: int,
    network: Network,
    source: Source,
    seen: Seen,
    m: int,
    row: Array,
    room: Room,
) -> None:
    """Turn the queries of all heads in row m into their contexts, for sublayer ``place``."""
    keys, values = source.keys[place], source.values[place]
    size, sentences = values.shape[2], len(source.lengths) // source.heads
    for head in range(source.heads):
        at = head * sentences + source.rows[m]
        part = row[head * size : (head + 1) * size]
        focus = _focus(kind, place, network, source, seen, (m, head, at), part, room.hidden)
        start, stop = focus.start, focus.stop
        for a in range(size):
            part[a] *= source.scale
        scores = room.scores[: stop - start]
        score(part, part[:0], keys[at % len(keys), start:stop], scores)
        if kind == FLEXIBLE:
            punish(scores, start, focus.gate, focus.centre, source.spread)
        softmax(scores)
        if kind == LOCAL_P:
            damp(scores, start, focus.centre, source.spread, scores)
        part[:] = 0
        add_rows(scores, values[at, start:stop], part)
        if kind != WHOLE:
            _leave(kind, place, seen, (m, head), focus, scores)
        if seen.weights.shape[3]:
            own = seen.weights[place, head, m]
            own[:] = 0
            own[start:stop] = scores


@compiled(**EXACT)
def _focus(
    kind: int,
    place: int,
    network: Network,
    source: Source,
    seen: Seen,
    which: tuple[int, int, int],
    query: Array,
    hidden: Array,
) -> Focus:
    """Return where a head of a row looks."""
    m, head, at = which
    length: np.int64 = source.lengths[at]
    nothing = query.dtype.type(0)
    if kind == WHOLE:
        return Focus(np.int64(0), length, nothing, nothing)
    if kind == LOCAL_P:
        centre = query.dtype.type(length) * _squash(network, query, network.v[:0], hidden)
        return _around(centre, source.reach, length)
    before = seen.before[m, place, head]
    if kind == LOCAL_M:
        return _around(min(before, query.dtype.type(length - 1)), source.reach, length)
    size = seen.words.shape[1] // seen.before.shape[1]
    words = seen.words[m, place * size : (place + 1) * size]
    gate = _squash(network, query, words, hidden)
    start, stop = np.int64(0), length
    if source.reach < np.inf:
        start, stop = edges(source.reach, gate, before, source.spread, length)
    return Focus(start, stop, gate, before)


@compiled(**EXACT)
def _around(centre: np.floating, reach: np.floating, length: np.int64) -> Focus:
    """Return the positions within ``reach`` of a centre, at least one."""
    if np.isnan(centre):  # of broken weights, which the context shall show
        return Focus(np.int64(0), np.int64(1), centre, centre)
    start: Any = min(max(np.int64(np.ceil(centre - reach)), 0), length - 1)
    stop: Any = max(min(np.int64(np.floor(centre + reach)) + 1, length), start + 1)
    return Focus(start, stop, type(centre)(0), centre)


@compiled(**SUMS)
def _squash(network: Network, query: Array, words: Array, hidden: Array) -> np.floating:
    """Return what a network makes of a query [A] and of words [U] or [0]."""
    hidden[:] = network.inner
    if words.shape[0]:
        for u in range(hidden.shape[0]):
            hidden[u] += words[u]
    add_rows(query, network.weight, hidden)
    total = network.outer[0]
    for u in range(hidden.shape[0]):
        total += network.v[u] * tanh(hidden[u])
    return sigmoid(total)


@compiled(**EXACT)
def _leave(
    kind: int, place: int, seen: Seen, which: tuple[int, int], focus: Focus, weights: Array
) -> None:
    """Note where a head has looked, and what its next step reads."""
    m, head = which
    seen.windows[m, place, head, 0] = focus.start
    seen.windows[m, place, head, 1] = focus.stop
    seen.gates[m, place, head] = focus.gate
    if kind == FLEXIBLE:
        seen.after[m, place, head] = mean_position(weights, focus.start)
    elif kind == LOCAL_P:
        seen.after[m, place, head] = focus.centre
    else:
        seen.after[m, place, head] = seen.before[m, place, head] + 1
