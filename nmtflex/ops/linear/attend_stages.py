"""Attention of all heads of a row to its sentence, as a stage; see ``stage_loops``.

Legend: M rows, K attending sublayers, h heads, A units of a head, B sentences, S source positions
or slots, U units of a network of one hidden layer, F units of what words contribute to it.
"""

from __future__ import annotations

import numpy as np

from nmtflex.ops.arrays import Array
from nmtflex.ops.attend.loops import add_rows, damp, mean_position, punish, score, softmax
from nmtflex.ops.compiled import EXACT, SUMS, compiled
from nmtflex.ops.linear.focus_stages import find_focus
from nmtflex.ops.linear.looking import (
    FEATURES,
    FLEXIBLE,
    LOCAL_M,
    LOCAL_P,
    POSITIVE,
    SCANNED,
    SHORTEST,
    WINDOWED,
    Focus,
    Network,
    Room,
    Seen,
    Source,
)
from nmtflex.ops.linear.remainder_stages import Rest, join, nothing_left, spread_out, weigh_rest


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
    values = source.values[place]
    size, sentences = values.shape[2], len(source.lengths) // source.heads
    for head in range(source.heads):
        at = head * sentences + source.rows[m]
        part = row[head * size : (head + 1) * size]
        focus = find_focus(kind, place, network, source, seen, (m, head, at), part, room.hidden)
        start, stop = focus.start, focus.stop
        weights = room.scores[: stop - start]
        rest = _weigh(kind, network, source, (place, at), focus, part, room.hidden, weights)
        part[:] = 0
        add_rows(weights, values[at, start:stop], part)
        if kind in WINDOWED:
            _leave(kind, place, seen, (m, head), focus, weights)
        if rest.share:
            join(rest, source.sums[place, at], part)
        if seen.weights.shape[3]:
            own = seen.weights[place, head, m]
            own[:] = 0
            own[start:stop] = weights
            if rest.share:
                spread_out(rest, own)


@compiled(**SUMS)
def _weigh(
    kind: int,
    network: Network,
    source: Source,
    which: tuple[int, int],
    focus: Focus,
    query: Array,
    hidden: Array,
    weights: Array,
) -> Rest:
    """Weigh what a head looks at; return what stands for the rest of the source, if anything.

    Args:
        kind: What is attended to.
        network: Of the sublayer.
        source: What is attended to.
        which: The sublayer, and the sentence with its head.
        focus: Where the head looks.
        query: [A], is overwritten.
        hidden: Room for the network.
        weights: As many as the positions of the focus, become the weights.
    """
    place, at = which
    keys = source.keys[place]
    if kind in FEATURES:
        _weigh_features(kind, network.weight, keys[at, :, 0], query, hidden, weights)
        return nothing_left(query)
    if kind in SCANNED:
        _weigh_chunk(network.v, keys[at, focus.start : focus.stop], hidden, weights)
        weights *= focus.gate
        return nothing_left(query)
    query *= source.scale
    score(query, query[:0], keys[at % len(keys), focus.start : focus.stop], weights)
    if kind == FLEXIBLE:
        punish(weights, focus.start, focus.gate, focus.centre, source.spread)
    log_sum = softmax(weights)
    if kind == LOCAL_P:
        damp(weights, focus.start, focus.centre, source.spread, weights)
    if kind != FLEXIBLE or not source.sums.shape[2]:
        return nothing_left(query)
    length, limits = source.lengths[at], (source.reach, source.spread)
    return weigh_rest(query, source.sums[place, at], focus, length, limits, log_sum)


@compiled(**SUMS)
def _weigh_chunk(v: Array, keys: Array, hidden: Array, weights: Array) -> None:
    """Weigh the positions that end where a scan stops; a single one weighs 1.

    Args:
        v: [U], of the scan's energy and then of the chunk's.
        keys: [S, U], likewise.
        hidden: [U], likewise.
        weights: [S], become the weights.
    """
    weights[:] = 1
    if len(weights) > 1:
        begin = len(hidden) // 2
        score(hidden[begin:], v[begin:], keys[:, begin:], weights)
        softmax(weights)


@compiled(**SUMS)
def _weigh_features(
    kind: int, random: Array, norm: Array, query: Array, projected: Array, weights: Array
) -> None:
    """Weigh the sums of S features; see ``nmtflex.attention.rfa``.

    Args:
        kind: FOURIER or POSITIVE.
        random: [A, U], sigma times random vectors.
        norm: [S], of the sentence.
        query: [A], is scaled to length 1.
        projected: [U], becomes the products with the random vectors.
        weights: [S], becomes the weights.
    """
    one, squares = query.dtype.type(1), query.dtype.type(SHORTEST**2)
    for a in range(query.shape[0]):
        squares += query[a] * query[a]
    query *= one / np.sqrt(squares)
    projected[:] = 0
    add_rows(query, random, projected)
    if kind == POSITIVE:
        weights[:] = projected + norm
        softmax(weights)
        return
    size = len(projected)
    for u in range(size):
        weights[u] = np.sin(projected[u])
        weights[size + u] = np.cos(projected[u])
    weights *= one / np.sqrt(query.dtype.type(size))
    total = query.dtype.type(0)
    for i in range(2 * size):
        total += weights[i] * norm[i]
    weights /= max(total, one)


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
    elif kind == LOCAL_M:
        seen.after[m, place, head] = seen.before[m, place, head] + 1
    else:
        seen.after[m, place, head] = focus.centre
