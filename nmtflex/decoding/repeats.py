"""Translations without repeated n-grams, against loops such as "and try to try to try".

Legend: N hypotheses of T words, K words proposed for each, n the length of an n-gram.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmtflex.ops.beam import Barred, leave_out, repeating

Array = NDArray[Any]


class Repeats:
    """Knows which words would repeat an n-gram of their own hypothesis.

    Args:
        size: n, in tokens.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._said: Array = np.zeros((0, 0), np.int64)  # [N, T] of the last step
        self._barred = Barred(self._said, np.zeros(0, np.int64))

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
            self._said = np.concatenate([self._said[parents], tokens[:, None]], axis=1)
        else:
            self._said = np.zeros((len(tokens), 0), np.int64)
        self._barred = repeating(self._said, self._size)
        return int(self._barred.counts.max())

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
        barred, counts = self._barred
        if forced is not None:
            counts = np.where(forced, 0, counts)
        values, words = leave_out(values, words, Barred(barred, counts))
        return values[:, :width], words[:, :width]
