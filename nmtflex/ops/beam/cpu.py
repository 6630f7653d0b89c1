"""The best continuations in a loop on the CPU."""

from __future__ import annotations

import numpy as np

from nmtflex.ops.beam import Array, loops


def extend(
    rows: Array, totals: Array, values: Array, words: Array, slots: Array
) -> tuple[Array, Array, Array]:
    """Insert them one by one; see ``nmtflex.ops.beam``."""
    most = values.size
    found = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
    count = loops.extend(rows, totals, values, words, slots, *found)
    parents, chosen, sums = (part[:count] for part in found)
    return parents, chosen, sums
