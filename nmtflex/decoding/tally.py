"""The count of score computations: CPS."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # scoring two files needs no torch
    from torch import Tensor


class Tally:
    """Score computations of a translation, added up batch by batch.

    Shu and Nakayama measure the cost of attention by the mean *computations per step* (CPS) of the
    score function. Here, for each sentence that is not empty: the scores computed for all its
    hypotheses over all steps, the end-of-sentence step included, divided by the (hypothesis, step)
    pairs; then the mean over the sentences. Padding and finished hypotheses do not count. The
    scores of several heads and attending layers are divided by their number, so that for global
    attention CPS is the mean length of the sources whatever the decoder. The scores of all of them
    together are counted beside it, as a total.
    """

    def __init__(self) -> None:
        self._ratios: list[float] = []
        self._totals: list[float] = []
        self._encoding: list[float] = []

    def add(
        self, computed: Tensor, pairs: Tensor, encoding: Tensor, total: Tensor | None = None
    ) -> None:
        """Add the sentences of a batch.

        Args:
            computed: [B] scores computed in decoding, the mean over heads and attending layers.
            pairs: [B] (hypothesis, step) pairs.
            encoding: [B] scores computed once, while reading the source; a mean as well.
            total: [B] ``computed`` of all heads and layers together; None if there is one head.
        """
        total = computed if total is None else total
        self._ratios += (computed.double() / pairs).tolist()
        self._totals += (total.double() / pairs).tolist()
        self._encoding += encoding.tolist()

    def merge(self, other: Tally) -> None:
        """Add the sentences of another tally."""
        self._ratios += other._ratios
        self._totals += other._totals
        self._encoding += other._encoding

    def to_lists(self) -> tuple[list[float], list[float], list[float]]:
        """Return the contents, for another process."""
        return self._ratios, self._encoding, self._totals

    @classmethod
    def from_lists(cls, ratios: list[float], encoding: list[float], totals: list[float]) -> Tally:
        """Rebuild from ``to_lists``."""
        tally = cls()
        tally._ratios, tally._encoding, tally._totals = ratios, encoding, totals
        return tally

    @property
    def cps(self) -> float | None:
        """Mean score computations a step; None if no sentence was translated."""
        return _mean(self._ratios)

    @property
    def total(self) -> float | None:
        """The same for all heads and attending layers together."""
        return _mean(self._totals)

    @property
    def encoding(self) -> float | None:
        """Mean score computations a sentence before the first step (K slots: K S)."""
        return _mean(self._encoding)


def _mean(values: list[float]) -> float | None:
    """Return a mean, which does not depend on the order; None of nothing."""
    return math.fsum(values) / len(values) if values else None
