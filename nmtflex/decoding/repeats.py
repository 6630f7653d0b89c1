"""Translations without repeated n-grams, against loops such as "and try to try to try".

Legend: N hypotheses of T words, K words proposed for each, n the length of an n-gram.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Repeats:
    """Knows which words would repeat an n-gram of their own hypothesis.

    Args:
        size: n, in tokens.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._words: Array = np.zeros((0, 0), np.int64)  # [N, T] of the last step
        self._banned: Array = np.zeros((0, 2), np.int64)  # (hypothesis, word), each once

    def grow(self, parents: Array, tokens: Array, step: int) -> int:
        """Go on with the hypotheses of a step.

        Args:
            parents: [N], what they were in the step before.
            tokens: [N], their last words; at step 0 BOS, which is none.
            step: Their number of words.

        Returns:
            The most words that one of them must not take.
        """
        if step:
            self._words = np.concatenate([self._words[parents], tokens[:, None]], axis=1)
        else:
            self._words = np.zeros((len(tokens), 0), np.int64)
        before = self._size - 1  # words of an n-gram that stand before its last
        starts = max(0, step - before)
        same = np.ones((len(tokens), starts), bool)
        for place in range(before if starts else 0):
            last = self._words[:, step - before + place, None]
            same &= self._words[:, place : place + starts] == last
        row, start = np.nonzero(same)
        self._banned = np.unique(np.stack([row, self._words[row, start + before]], axis=1), axis=0)
        return int(np.bincount(self._banned[:, 0]).max(initial=0))

    def without(
        self, values: Array, words: Array, width: int, forced: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the best words that repeat nothing.

        Args:
            values: [N, K], log-probabilities of words, the best first.
            words: [N, K].
            width: How many to return, at most.
            forced: [N], hypotheses that have no choice, whatever they repeat; None: none of them.

        Returns:
            Log-probabilities and words [N, width] or fewer; -inf is no word.
        """
        if not len(self._banned):
            return values[:, :width], words[:, :width]
        entries = int(max(words.max(), self._words.max())) + 1
        proposed = np.arange(len(words))[:, None] * entries + words
        banned = np.isin(proposed, self._banned @ [entries, 1])
        if forced is not None:
            banned &= ~forced[:, None]
        values = np.where(banned, -np.inf, values)
        order = np.argsort(-values, axis=1, kind="stable")[:, :width]
        return np.take_along_axis(values, order, 1), np.take_along_axis(words, order, 1)
