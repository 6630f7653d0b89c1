"""The best continuations in loops on the CPU."""

from __future__ import annotations

import numpy as np

from nmtflex.ops.beam import Array, loops, repeat_loops


def extend(
    rows: Array, totals: Array, values: Array, words: Array, slots: Array
) -> tuple[Array, Array, Array]:
    """Insert them one by one; see ``nmtflex.ops.beam``."""
    most = values.size
    found = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
    count = loops.extend(rows, totals, values, words, slots, *found)
    parents, chosen, sums = (part[:count] for part in found)
    return parents, chosen, sums


def repeating(said: Array, size: int) -> tuple[Array, Array]:
    """Compare every n-gram with the last words; see ``nmtflex.ops.beam``."""
    words, counts = repeat_loops.repeating(said, size)
    return words, counts


def leave_out(values: Array, words: Array, barred: Array, counts: Array) -> tuple[Array, Array]:
    """Move them to the front one by one; see ``nmtflex.ops.beam``."""
    values, words = values.copy(), words.copy()
    repeat_loops.leave_out(values, words, barred, counts)
    return values, words
