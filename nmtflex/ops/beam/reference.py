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


def repeating(said: Array, size: int) -> tuple[Array, Array]:
    """Compare all n-grams with the last words at once; see ``nmtflex.ops.beam``."""
    before = size - 1  # words of an n-gram that stand before its last
    length = said.shape[1]
    starts = max(0, length - before)
    same = np.ones((len(said), starts), bool)
    for place in range(before if starts else 0):
        same &= said[:, place : place + starts] == said[:, length - before + place, None]
    order = np.argsort(~same, axis=1, kind="stable")
    return np.take_along_axis(said[:, before:], order, 1), same.sum(1)


def leave_out(values: Array, words: Array, barred: Array, counts: Array) -> tuple[Array, Array]:
    """Compare all of them, and sort; see ``nmtflex.ops.beam``."""
    valid = np.arange(barred.shape[1]) < counts[:, None]
    barring = (words[:, :, None] == barred[:, None]) & valid[:, None]
    out = barring.any(2)
    order = np.argsort(out, axis=1, kind="stable")
    left = np.where(out, -np.inf, values)
    return np.take_along_axis(left, order, 1), np.take_along_axis(words, order, 1)
