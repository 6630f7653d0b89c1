"""Where a head looks; see ``attend_stages``, with the legend."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmtflex.ops.arrays import Array
from nmtflex.ops.attend.loops import add_rows
from nmtflex.ops.attend.windows import edges
from nmtflex.ops.compiled import EXACT, SUMS, compiled
from nmtflex.ops.elementary import tanh
from nmtflex.ops.linear.looking import (
    LOCAL_M,
    LOCAL_P,
    MOCHA,
    SCANNED,
    WINDOWED,
    Focus,
    Network,
    Seen,
    Source,
)
from nmtflex.ops.monotonic.loops import stop
from nmtflex.ops.recurrent.loops import sigmoid


@compiled(**EXACT)
def find_focus(
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
    if kind not in WINDOWED:
        return Focus(np.int64(0), length, nothing, nothing)
    if kind == LOCAL_P:
        centre = query.dtype.type(length) * _squash(network, query, network.v[:0], hidden)
        return _around(centre, source.reach, length)
    before = seen.before[m, place, head]
    if kind == LOCAL_M:
        return _around(min(before, query.dtype.type(length - 1)), source.reach, length)
    if kind in SCANNED:
        _fill(network, query, query[:0], hidden)
        units = len(hidden) // 2 if kind == MOCHA else len(hidden)
        return _scan(network, source.keys[place, at], source, before, length, hidden[:units])
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
    _fill(network, query, words, hidden)
    total = network.outer[0]
    for u in range(hidden.shape[0]):
        total += network.v[u] * tanh(hidden[u])
    return sigmoid(total)


@compiled(**SUMS)
def _fill(network: Network, query: Array, words: Array, hidden: Array) -> None:
    """Fill the hidden layer of a network, before its tanh."""
    hidden[:] = network.inner
    for u in range(words.shape[0]):
        hidden[u] += words[u]
    add_rows(query, network.weight, hidden)


@compiled(**SUMS)
def _scan(
    network: Network, keys: Array, source: Source, before: float, length: np.int64, hidden: Array
) -> Focus:
    """Return the positions that end where a scan stops; none if it passes the end.

    Args:
        network: Of the energy, first.
        keys: [S, U or more], of the energy first.
        source: Whose reach is the positions to be read.
        before: Where the last step stopped.
        length: Of the sentence.
        hidden: [U], filled.
    """
    v, first = network.v[: len(hidden)], np.int64(before)
    s, chosen = stop(hidden, v, network.outer, keys, first, length)
    if s == length:
        return Focus(length, length, chosen, type(chosen)(length))
    start: Any = max(s + 1 - np.int64(source.reach), 0)
    return Focus(start, np.int64(s + 1), chosen, type(chosen)(s))
