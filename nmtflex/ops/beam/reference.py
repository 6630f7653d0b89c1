"""The best continuations in numpy."""

from __future__ import annotations

import numpy as np

from nmtflex.ops.beam import Array, places


def extend(
    rows: Array, totals: Array, values: Array, words: Array, slots: Array
) -> tuple[Array, Array, Array]:
    """Sort all continuations; see ``nmtflex.ops.beam``."""
    sums = totals[:, None] + values
    parents, ranks = np.nonzero(sums > -np.inf)
    words, sums = words[parents, ranks].astype(np.int64), sums[parents, ranks]
    order = np.lexsort((words, -sums, rows[parents]))  # stable: then by hypothesis
    sentences = rows[parents][order]
    order = order[places(sentences) < slots[sentences]]
    return parents[order], words[order], sums[order]
