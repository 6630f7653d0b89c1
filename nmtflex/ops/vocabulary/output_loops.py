"""The output layer's products and their best words in one call, compiled by numba.

Legend: M rows, D units, V words, K words asked for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.compiled import entry
from nmtflex.ops.linear.int8_loops import Int8
from nmtflex.ops.linear.product_loops import ROWS, enter, multiply, space
from nmtflex.ops.vocabulary.loops import best_rows

CHUNK = 1 << 18  # logits at once: 1 MB, which stays in the cache
LEAST_ROWS = 12  # at once, fewer of which read the weights too often


class Layer(NamedTuple):
    """An output layer."""

    weights: Int8 | Array  # laid out; see ``nmtflex.ops.linear.product_loops``
    scales: Array  # of the columns in 8 bits, as many as are laid out
    bias: Array  # [V]


@entry(parallel=True)
def best_of_products(
    hidden: Array,
    layer: Layer,
    never: Whole,
    only: Whole,
    values: Array,
    words: Whole,
    shares: Whole,
) -> None:
    """Multiply rows by the output layer's weight, and find the most probable words of each.

    Args:
        hidden: [M, D].
        layer: The output layer.
        never: As in ``nmtflex.ops.vocabulary.loops.best_words``, with what follows.
        only: [M].
        values: [M, K].
        words: [M, K].
        shares: Where the rows of each thread begin and end.
    """
    weights, scales, bias = layer
    at_once = min(ROWS, max(LEAST_ROWS, CHUNK // len(scales)))
    for share in prange(shares.shape[0] - 1):
        entering = space(hidden.shape[1], weights, hidden)
        begin, end = shares[share], shares[share + 1]
        logits = np.empty((min(at_once, end - begin), len(scales)), hidden.dtype)
        for low in range(begin, end, at_once):
            high = min(low + at_once, end)
            for m in range(low, high):
                enter(hidden[m], entering, m - low)
            part = logits[: high - low]
            multiply(weights, 0, scales, entering, hidden.shape[1], part)
            best_rows(
                part, bias, never, only[low:high], values[low:high], words[low:high], 0, high - low
            )
