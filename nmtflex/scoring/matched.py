"""Which words of a translation a reference has too, by edit distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def matched_words(words: Sequence[str], reference: Sequence[str]) -> list[bool]:
    """Return for each word whether the alignment of fewest edits gives it an equal one.

    These are the tags of word-level quality estimation (Specia et al., 2018,
    https://aclanthology.org/W18-6452, section 5): OK or BAD by TER's alignment without shifts, so a
    word in another place counts as wrong. Case counts here. Of the alignments with the fewest
    insertions, deletions and substitutions, one with the most equal words is taken.

    Args:
        words: Of the translation.
        reference: Words, split alike.
    """
    vocabulary: dict[str, int] = {}
    own, other = (
        np.array([vocabulary.setdefault(word, len(vocabulary)) for word in side], dtype=np.int64)
        for side in (words, reference)
    )
    edit = len(own) + len(other) + 1  # costs more than all equal words together are worth
    costs = _costs(own, other, edit)
    found = np.zeros(len(own), dtype=bool)
    row, column = len(own), len(other)
    while row and column:
        equal = own[row - 1] == other[column - 1]
        if costs[row, column] == costs[row - 1, column - 1] + (-1 if equal else edit):
            row, column = row - 1, column - 1
            found[row] = equal
        elif costs[row, column] == costs[row - 1, column] + edit:
            row -= 1
        else:
            column -= 1
    return found.tolist()


def _costs(own: NDArray[Any], other: NDArray[Any], edit: int) -> NDArray[Any]:
    """Return the least cost [W + 1, R + 1] of aligning the first words of either side.

    An edit costs ``edit``, and an equal word -1.
    """
    steps = edit * np.arange(len(other) + 1)
    costs = np.empty((len(own) + 1, len(steps)), dtype=np.int64)
    costs[0] = steps
    for row, word in enumerate(own, 1):
        before = costs[row - 1]
        costs[row] = before + edit
        diagonal = before[:-1] + np.where(other == word, -1, edit)
        np.minimum(costs[row, 1:], diagonal, out=costs[row, 1:])
        costs[row] = np.minimum.accumulate(costs[row] - steps) + steps  # words that are left out
    return costs
