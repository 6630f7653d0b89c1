"""The loop of attention to earlier steps on the CPU, compiled by numba."""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.attend.loops import add_row, dot, softmax
from nmtflex.ops.compiled import SUMS, compiled, entry


@entry(parallel=True)
def attend(
    heads: int, query: Array, rows: Array, places: Whole, made: Array, shares: Whole
) -> None:
    """Attend to the steps of each of N hypotheses.

    Args:
        heads: h.
        query: [N, D].
        rows: [R, 2 D], keys, then values.
        places: [N, T], the row of each step.
        made: [N, D] of zeros, becomes the contexts.
        shares: Where the hypotheses of each thread begin and end.
    """
    for share in prange(shares.shape[0] - 1):
        weights = np.empty((heads, places.shape[1]), query.dtype)
        for n in range(shares[share], shares[share + 1]):
            attend_row(query[n], rows, 0, places[n], weights, made[n])


@compiled(**SUMS)
def attend_row(
    query: Array, rows: Array, begin: int, places: Whole, weights: Array, made: Array
) -> None:
    """Attend to the steps of one hypothesis; see ``attend``.

    Args:
        query: [D].
        rows: [R, 2 D and more].
        begin: Where a layer's keys begin in a row.
        places: [T].
        weights: [h, T], room.
        made: [D] of zeros, becomes the context.
    """
    size, heads = len(query), len(weights)
    each = size // heads
    scale = query.dtype.type(1 / math.sqrt(each))
    # Step by step, and for each head after head, as the numbers lie in memory.
    for t in range(len(places)):
        keys = rows[places[t], begin : begin + size]
        for head in range(heads):
            first, stop = head * each, (head + 1) * each
            weights[head, t] = scale * dot(query[first:stop], keys[first:stop])
    for head in range(heads):
        softmax(weights[head])
    for t in range(len(places)):
        values = rows[places[t], begin + size : begin + 2 * size]
        for head in range(heads):
            first, stop = head * each, (head + 1) * each
            add_row(weights[head, t], values[first:stop], made[first:stop])
