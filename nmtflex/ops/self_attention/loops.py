"""The loops of self-attention on the CPU, compiled by numba; ``cpu`` calls them.

Queries are taken a block at a time, so memory grows with a sentence and not with its square. All
products run in the tiles of ``ops.linear``. A sentence's numbers are the same to the last bit
whatever sentences are beside it.

Legend: M tokens of B sentences, S of one, K of a block, D units, h heads of E = D / h.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.attend.loops import backward_softmax, softmax
from nmtflex.ops.compiled import SUMS, compiled, entry
from nmtflex.ops.draws import drawn
from nmtflex.ops.dropout.loops import drop_share
from nmtflex.ops.elementary import exp
from nmtflex.ops.linear.product_loops import COLUMNS, ROWS, single_tiles


class How(NamedTuple):
    """Options of self-attention."""

    heads: int
    causal: bool
    reach: int  # tokens on each side that one attends to
    dropout: float
    seed: int  # of dropout


class Room(NamedTuple):
    """What a head attends with; columns of products as tiles read them, in float32."""

    queries: Array  # [ROWS, E]
    keys: Array  # [tiles of positions, E, COLUMNS]
    values: Array  # [tiles of units, S, COLUMNS]
    weights: Array  # [ROWS, S and more], of what a block sees
    contexts: Array  # [ROWS, E and more]


class Backward(NamedTuple):
    """What the backward pass of a head needs beside ``Room``, alike."""

    grads: Array  # [ROWS, E], of the contexts
    keys: Array  # as values of ``Room``
    values: Array  # as keys of ``Room``
    block_queries: Array  # [tiles of units, ROWS, COLUMNS]
    block_grads: Array  # [tiles of units, ROWS, COLUMNS]
    of_weights: Array  # as weights of ``Room``
    turned: Array  # [S, ROWS], of the same positions
    sums: Array  # [S, E and more], of the same positions


@entry(parallel=True)
def attend(
    projections: Array, contexts: Array, sums: Array, begins: Whole, how: How, shares: Whole
) -> None:
    """Attend within each sentence.

    Args:
        projections: [M, 3 D], queries, keys and values.
        contexts: [M, D], is written.
        sums: [M, h], becomes the logarithms of the sums of the exponentials of the scores.
        begins: [B + 1], where the tokens of each sentence begin, and where the last one's end.
        how: Options.
        shares: Where the heads of each thread begin and end; those of a sentence follow each other.
    """
    for share in prange(shares.shape[0] - 1):
        first, last = shares[share], shares[share + 1]
        _attend_share(projections, contexts, sums, begins, how, first, last)


@compiled(**SUMS)
def _attend_share(
    projections: Array,
    contexts: Array,
    sums: Array,
    begins: Whole,
    how: How,
    first: int,
    last: int,
) -> None:
    """Attend with the heads of a thread."""
    room = make_room(_longest(begins, first, last, how), contexts.shape[1] // how.heads, sums)
    for at in range(first, last):
        begin, end, head = begins[at // how.heads], begins[at // how.heads + 1], at % how.heads
        lay_out(projections[begin:end], head, room)
        for low in range(begin, end, ROWS):
            high = min(low + ROWS, end)
            start, stop = seen_by(low - begin, high - begin, end - begin, how.causal, how.reach)
            score(projections[low:high], start, stop, head, room)
            for k in range(high - low):
                left, right = own_part(low + k - begin, end - begin, start, how.causal, how.reach)
                weights = room.weights[k, left:right]
                sums[low + k, head] = softmax(weights)
                if how.dropout:
                    _drop(weights, low + k, head, how)
                clear_around(room.weights[k, : stop - start], left, right)
            look(start, stop, head, room, contexts[low:high])


@compiled(**SUMS)
def _longest(begins: Whole, first: int, last: int, how: How) -> int:
    """Return the tokens of the longest sentence among some heads."""
    longest = 0
    for b in range(first // how.heads, -(-last // how.heads)):
        longest = max(longest, begins[b + 1] - begins[b])
    return longest


@compiled(**SUMS)
def seen_by(low: int, high: int, length: int, causal: bool, reach: int) -> tuple[int, int]:
    """Return what a block of a sentence sees: from where, always the start of a tile, to where."""
    start = max(low - reach, 0) // COLUMNS * COLUMNS
    return start, (high if causal else min(high + reach, length))


@compiled(**SUMS)
def own_part(at: int, length: int, start: int, causal: bool, reach: int) -> tuple[int, int]:
    """Return what a token sees, as places in what its block sees, which begins at ``start``."""
    stop = at + 1 if causal else min(at + 1 + reach, length)
    return max(at - reach, 0) - start, stop - start


@compiled(**SUMS)
def clear_around(row: Array, first: int, stop: int) -> None:
    """Set a row to 0 but for a part."""
    _clear(row, 0, first)
    _clear(row, stop, len(row))


@compiled(**SUMS)
def _clear(row: Array, first: int, last: int) -> None:
    """Set a part of a row to 0."""
    for s in range(first, last):
        row[s] = 0


@compiled(**SUMS)
def _drop(weights: Array, at: int, head: int, how: How) -> None:
    """Set a share of a token's weights to 0, and divide the others by 1 - dropout."""
    low, high = np.uint32(how.seed), np.uint32(how.seed >> 32)
    own = drawn(np.uint32(at * how.heads + head), low, high)
    seed = np.int64(high) << 32 | np.int64(own)
    drop_share(weights, weights, how.dropout, seed, 0, len(weights))


@compiled(**SUMS)
def make_room(longest: int, each: int, like: Array) -> Room:
    """Return room for sentences of at most so many tokens; what is not written is 0."""
    positions, units = _tiles(longest), _tiles(each)
    return Room(
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
def lay_out(sentence: Array, head: int, room: Room) -> None:
    """Lay a head's keys and values of a sentence [S, 3 D] out as tiles."""
    each = room.queries.shape[1]
    _, keys, values = _columns(head, each, sentence.shape[1] // (3 * each))
    _lay_down(sentence, keys, each, room.keys)
    _lay_along(sentence, values, each, room.values)


@compiled(**SUMS)
def _lay_down(rows: Array, first: int, each: int, columns: Array) -> None:
    """Lay E units of rows out as tiles, each row a column."""
    for s in range(len(rows)):
        tile, column = s // COLUMNS, s % COLUMNS
        for e in range(each):
            columns[tile, e, column] = rows[s, first + e]


@compiled(**SUMS)
def _lay_along(rows: Array, first: int, each: int, columns: Array) -> None:
    """Lay E units of rows out as tiles, each unit a column."""
    for tile in range(len(columns)):
        low = tile * COLUMNS
        for s in range(len(rows)):
            for e in range(low, min(low + COLUMNS, each)):
                columns[tile, s, e - low] = rows[s, first + e]


@compiled(**SUMS)
def score(rows: Array, start: int, stop: int, head: int, room: Room) -> None:
    """Compute the scores of a block, rows [K, 3 D], and what it sees; into weights."""
    each = room.queries.shape[1]
    scale = rows.dtype.type(1 / np.sqrt(each))
    for k in range(len(rows)):
        for e in range(each):
            room.queries[k, e] = rows[k, head * each + e] * scale
    keys, tiles = room.keys[start // COLUMNS :], _tiles(stop - start)
    _multiply(room.queries, len(rows), keys, each, tiles, room.weights)


@compiled(**SUMS)
def look(start: int, stop: int, head: int, room: Room, contexts: Array) -> None:
    """Sum what a block sees by its weights, into a head's part of contexts [K, D]."""
    count, each, values = len(contexts), room.queries.shape[1], room.values[:, start:]
    _multiply(room.weights, count, values, stop - start, len(values), room.contexts)
    _put(room.contexts, count, each, contexts, head * each)


@compiled(**SUMS)
def _put(made: Array, count: int, each: int, rows: Array, first: int) -> None:
    """Copy E columns of what a product made to rows."""
    for k in range(count):
        for e in range(each):
            rows[k, first + e] = made[k, e]


@compiled(**SUMS)
def _multiply(rows: Array, count: int, columns: Array, width: int, tiles: int, made: Array) -> None:
    """Multiply the first ``width`` numbers of rows by some tiles of columns."""
    for tile in range(tiles):
        entering = rows.ctypes.data, rows.strides[0], columns[tile].ctypes.data, width
        leaving = made.ctypes.data + tile * COLUMNS * made.itemsize, made.strides[0]
        single_tiles(count, entering, leaving)


@entry(parallel=True)
def backward(
    projections: Array,
    sums: Array,
    grads: Array,
    of_projections: Array,
    begins: Whole,
    how: How,
    shares: Whole,
) -> None:
    """The backward pass of ``attend``.

    Args:
        projections: As they went in.
        sums: As they came out.
        grads: [M, D], of the contexts.
        of_projections: [M, 3 D], becomes the gradient of the projections.
        begins: As in ``attend``.
        how: As in ``attend``.
        shares: As in ``attend``.
    """
    for share in prange(shares.shape[0] - 1):
        first, last = shares[share], shares[share + 1]
        _backward_share(projections, sums, grads, of_projections, begins, how, first, last)


@compiled(**SUMS)
def _backward_share(
    projections: Array,
    sums: Array,
    grads: Array,
    of_projections: Array,
    begins: Whole,
    how: How,
    first: int,
    last: int,
) -> None:
    """Do the backward pass of the heads of a thread."""
    longest, each = _longest(begins, first, last, how), grads.shape[1] // how.heads
    room, own = make_room(longest, each, sums), _make_backward(longest, each, sums)
    for at in range(first, last):
        begin, end, head = begins[at // how.heads], begins[at // how.heads + 1], at % how.heads
        sentence, made = projections[begin:end], of_projections[begin:end]
        queries, keys, values = _columns(head, each, how.heads)
        lay_out(sentence, head, room)
        _lay_down(sentence, values, each, own.values)
        _lay_along(sentence, keys, each, own.keys)
        for s in range(end - begin):
            _clear(made[s], keys, keys + each)
            _clear(made[s], values, values + each)
        for low in range(begin, end, ROWS):
            high = min(low + ROWS, end)
            count, length = high - low, end - begin
            start, stop = seen_by(low - begin, high - begin, length, how.causal, how.reach)
            seen, tile = stop - start, start // COLUMNS
            score(projections[low:high], start, stop, head, room)
            _take_grads(grads[low:high], head, room, own)
            _multiply(own.grads, count, own.values[tile:], each, _tiles(seen), own.of_weights)
            for k in range(count):
                left, right = own_part(low + k - begin, length, start, how.causal, how.reach)
                weights, of_weights = room.weights[k, left:right], own.of_weights[k, left:right]
                if how.dropout:
                    _drop(of_weights, low + k, head, how)
                _weigh(weights, sums[low + k, head])
                backward_softmax(weights, of_weights, 0.0)
                if how.dropout:
                    _drop(weights, low + k, head, how)
                clear_around(room.weights[k, :seen], left, right)
                clear_around(own.of_weights[k, :seen], left, right)
            _multiply_turned(room.weights, count, seen, own.block_grads, own)
            _add(own.sums, seen, each, made[start:], values)
            _multiply_turned(own.of_weights, count, seen, own.block_queries, own)
            _add(own.sums, seen, each, made[start:], keys)
            seen_keys = own.keys[:, start:]
            _multiply(own.of_weights, count, seen_keys, seen, len(seen_keys), room.contexts)
            _scale(room.contexts, count, each)
            _put(room.contexts, count, each, of_projections[low:high], queries)


@compiled(**SUMS)
def _columns(head: int, each: int, heads: int) -> tuple[int, int, int]:
    """Return where a head's queries, keys and values begin in a row of projections."""
    return head * each, (heads + head) * each, (2 * heads + head) * each


@compiled(**SUMS)
def _make_backward(longest: int, each: int, like: Array) -> Backward:
    """Return room for sentences of at most so many tokens; what is not written is 0."""
    positions, units = _tiles(longest), _tiles(each)
    return Backward(
        np.empty((ROWS, each), like.dtype),
        np.zeros((units, longest, COLUMNS), like.dtype),
        np.zeros((positions, each, COLUMNS), like.dtype),
        np.zeros((units, ROWS, COLUMNS), like.dtype),
        np.zeros((units, ROWS, COLUMNS), like.dtype),
        np.empty((ROWS, positions * COLUMNS), like.dtype),
        np.empty((longest, ROWS), like.dtype),
        np.empty((longest, units * COLUMNS), like.dtype),
    )


@compiled(**SUMS)
def _take_grads(grads: Array, head: int, room: Room, own: Backward) -> None:
    """Take a block's gradients [K, D] of a head, and lay them and its queries out as tiles."""
    each = own.grads.shape[1]
    for k in range(len(grads)):
        for e in range(each):
            own.grads[k, e] = grads[k, head * each + e]
    _lay_along(own.grads[: len(grads)], 0, each, own.block_grads)
    _lay_along(room.queries[: len(grads)], 0, each, own.block_queries)


@compiled(**SUMS)
def _weigh(scores: Array, log_sum: float) -> None:
    """Turn scores into the weights that they had, by the logarithm of their sum."""
    for s in range(len(scores)):
        scores[s] = exp(scores[s] - log_sum)


@compiled(**SUMS)
def _multiply_turned(rows: Array, count: int, seen: int, columns: Array, own: Backward) -> None:
    """Multiply the transpose of rows [K, S] by a block's tiles, into ``own.sums`` [S, E]."""
    for k in range(count):
        for s in range(seen):
            own.turned[s, k] = rows[k, s]
    _multiply(own.turned, seen, columns, count, len(columns), own.sums)


@compiled(**SUMS)
def _add(made: Array, count: int, each: int, rows: Array, first: int) -> None:
    """Add E columns of what a product made to rows."""
    for k in range(count):
        for e in range(each):
            rows[k, first + e] += made[k, e]


@compiled(**SUMS)
def _scale(made: Array, count: int, each: int) -> None:
    """Multiply a block's gradient of scaled queries by their scale."""
    scale = made.dtype.type(1 / np.sqrt(each))
    for k in range(count):
        for e in range(each):
            made[k, e] *= scale
