"""All layers of a transformer encoder in one call, compiled by numba.

A sentence's numbers are the same to the last bit whatever sentences are beside it.

Legend: M tokens of B sentences, S of one, D units, h heads of E = D / h.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.attend.loops import softmax
from nmtflex.ops.compiled import SUMS, compiled, entry
from nmtflex.ops.linear.attend_stages import Seen, Source
from nmtflex.ops.linear.product_loops import COLUMNS, ROWS, single_tiles
from nmtflex.ops.linear.stage_loops import Fixed, Moving, run_share


class Attending(NamedTuple):
    """What a head attends with; weights of products as tiles read them, in float32."""

    queries: Array  # [ROWS, E]
    keys: Array  # [tiles of positions, E, COLUMNS]
    values: Array  # [tiles of units, S, COLUMNS]
    weights: Array  # [ROWS, S and more]
    contexts: Array  # [ROWS, E and more]


@entry(parallel=True)
def run_layers(
    fixed: Fixed,
    parts: Whole,
    source: Source,
    seen: Seen,
    moving: Moving,
    begins: Whole,
    shares: Whole,
) -> None:
    """Run a program whose parts have self-attention between them.

    Args:
        fixed: With the program.
        parts: Where each part begins, and where the last one ends.
        source: Not read but for its heads.
        seen: Not read.
        moving: What parts keep are queries, keys and values [M, 3 D], and contexts what they take.
        begins: [B + 1], where the tokens of each sentence begin, and where the last one's end.
        shares: Where the tokens of each thread begin and end.
    """
    for part in range(len(parts) - 1):
        for share in prange(shares.shape[0] - 1):
            low, high = shares[share], shares[share + 1]
            run_share(fixed, parts[part], parts[part + 1], source, seen, moving, low, high)
        if part + 2 < len(parts):
            for share in prange(shares.shape[0] - 1):
                low, high = shares[share], shares[share + 1]
                _look_around(moving.kept, source.heads, begins, low, high, moving.taken)


@compiled(**SUMS)
def _look_around(
    kept: Array, heads: int, begins: Whole, low: int, high: int, contexts: Array
) -> None:
    """Attend from the tokens of a thread to all tokens of their sentences."""
    longest = 0
    for b in range(len(begins) - 1):
        if begins[b] < high and begins[b + 1] > low:
            longest = max(longest, begins[b + 1] - begins[b])
    room = _room(longest, contexts.shape[1] // heads, kept)
    for b in range(len(begins) - 1):
        first, last = max(begins[b], low), min(begins[b + 1], high)
        if first < last:
            sentence = kept[begins[b] : begins[b + 1]]
            for head in range(heads):
                _lay_out(sentence, head, room)
                for at in range(first, last, ROWS):
                    stop = min(at + ROWS, last)
                    _attend(kept[at:stop], len(sentence), head, room, contexts[at:stop])


@compiled(**SUMS)
def _room(longest: int, each: int, like: Array) -> Attending:
    """Return room for sentences of at most so many tokens; what is not written is 0."""
    positions, units = _tiles(longest), _tiles(each)
    return Attending(
        np.empty((ROWS, each), like.dtype),
        np.zeros((positions, each, COLUMNS), like.dtype),
        np.zeros((units, longest, COLUMNS), like.dtype),
        np.empty((ROWS, positions * COLUMNS), like.dtype),
        np.empty((ROWS, units * COLUMNS), like.dtype),
    )


@compiled(**SUMS)
def _tiles(count: int) -> int:
    """Return how many tiles some columns take."""
    return -(-count // COLUMNS)


@compiled(**SUMS)
def _lay_out(sentence: Array, head: int, room: Attending) -> None:
    """Lay a head's keys and values of a sentence [S, 3 D] out as tiles."""
    size, each = sentence.shape[1] // 3, room.queries.shape[1]
    keys, values = size + head * each, 2 * size + head * each
    for s in range(len(sentence)):
        tile, column = s // COLUMNS, s % COLUMNS
        for e in range(each):
            room.keys[tile, e, column] = sentence[s, keys + e]
    for tile in range(len(room.values)):
        first = tile * COLUMNS
        for s in range(len(sentence)):
            for e in range(first, min(first + COLUMNS, each)):
                room.values[tile, s, e - first] = sentence[s, values + e]


@compiled(**SUMS)
def _attend(rows: Array, length: int, head: int, room: Attending, contexts: Array) -> None:
    """Attend from some tokens, rows [K, 3 D], with one head; its part of [K, D] is written."""
    count, each = len(rows), room.queries.shape[1]
    begin, scale = head * each, rows.dtype.type(1 / np.sqrt(each))
    for k in range(count):
        for e in range(each):
            room.queries[k, e] = rows[k, begin + e] * scale
    _multiply(room.queries, count, room.keys, each, _tiles(length), room.weights)
    for k in range(count):
        softmax(room.weights[k, :length])
    _multiply(room.weights, count, room.values, length, len(room.values), room.contexts)
    for k in range(count):
        for e in range(each):
            contexts[k, begin + e] = room.contexts[k, e]


@compiled(**SUMS)
def _multiply(rows: Array, count: int, columns: Array, width: int, tiles: int, made: Array) -> None:
    """Multiply the first ``width`` numbers of rows by some tiles of columns."""
    for tile in range(tiles):
        entering = rows.ctypes.data, rows.strides[0], columns[tile].ctypes.data, width
        leaving = made.ctypes.data + tile * COLUMNS * made.itemsize, made.strides[0]
        single_tiles(count, entering, leaving)
