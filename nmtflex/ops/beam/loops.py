"""The loop that finds the best continuations, compiled by numba."""

from __future__ import annotations

import numpy as np

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.compiled import ROUNDED, compiled, entry


@entry(rounding=True)
def extend(
    rows: Whole,
    totals: Array,
    values: Array,
    words: Array,
    slots: Whole,
    parents: Whole,
    chosen: Whole,
    sums: Array,
) -> int:
    """Write the best continuations of each sentence; see ``nmtflex.ops.beam``.

    Returns:
        How many there are.
    """
    begin = end = 0  # of the sentence's
    for n in range(rows.shape[0]):
        if n > 0 and rows[n] != rows[n - 1]:
            begin = end
        for k in range(values.shape[1]):
            total = totals[n] + values[n, k]
            full = end - begin == slots[rows[n]]
            if total == -np.inf or (full and total < sums[end - 1]):
                break  # as all that follow
            found = n, np.int64(words[n, k]), total
            end = _insert(found, begin, end, full, (parents, chosen, sums))
    return end


@compiled(**ROUNDED)
def _insert(
    found: tuple[int, int, float],
    begin: int,
    end: int,
    full: bool,
    best: tuple[Whole, Whole, Array],
) -> int:
    """Put a continuation in its place, if it has one; return where the sentence's end."""
    (parent, word, total), (parents, chosen, sums) = found, best
    place = end
    while place > begin and (
        total > sums[place - 1] or (total == sums[place - 1] and word < chosen[place - 1])
    ):
        place -= 1
    if full:
        if place == end:
            return end
        end -= 1  # the last one leaves
    for i in range(end, place, -1):
        parents[i], chosen[i], sums[i] = parents[i - 1], chosen[i - 1], sums[i - 1]
    parents[place], chosen[place], sums[place] = parent, word, total
    return end + 1
