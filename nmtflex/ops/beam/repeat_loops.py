"""Words that would repeat an n-gram of their hypothesis, compiled by numba.

Legend: N hypotheses of T words, K words proposed for each, n the length of an n-gram.
"""

from __future__ import annotations

import numpy as np

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.compiled import ROUNDED, compiled, entry


@entry(rounding=True)
def repeating(said: Whole, size: int) -> tuple[Whole, Whole]:
    """Return the words that a hypothesis must not take; see ``nmtflex.ops.beam``.

    Args:
        said: [N, T].
        size: n; 0 forbids nothing.
    """
    count, length = said.shape
    starts = max(0, length - size + 1) if size else 0
    words, counts = np.empty((count, starts), np.int64), np.zeros(count, np.int64)
    for n in range(count):
        for start in range(starts):
            if _alike(said[n], start, length - size + 1, size - 1):
                words[n, counts[n]] = said[n, start + size - 1]
                counts[n] += 1
    return words, counts


@compiled(**ROUNDED)
def _alike(words: Whole, one: int, other: int, count: int) -> bool:
    """Whether as many words follow each other at both places."""
    i = 0
    while i < count and words[one + i] == words[other + i]:
        i += 1
    return i == count


@entry(rounding=True)
def leave_out(values: Array, found: Whole, words: Whole, counts: Whole) -> None:
    """Move the proposals that may be taken to the front, in place; see ``nmtflex.ops.beam``."""
    for n in range(len(found)):
        kept = 0
        for k in range(found.shape[1]):
            if not _has(words[n], counts[n], found[n, k]):
                values[n, kept], found[n, kept] = values[n, k], found[n, k]
                kept += 1
        for k in range(kept, found.shape[1]):
            values[n, k] = -np.inf


@compiled(**ROUNDED)
def _has(words: Whole, count: int, word: int) -> bool:
    """Whether a word is among the first of some."""
    i = 0
    while i < count and words[i] != word:
        i += 1
    return i < count
