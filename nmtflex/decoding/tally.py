"""The count of score computations: CPS."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # scoring two files needs no torch
    from torch import Tensor


class Tally:
    """Score computations of a translation, added up batch by batch.

    Shu and Nakayama measure the cost of attention by the mean *computations per step* (CPS) of the
    score function. Here, for each sentence that is not empty: the scores computed for all its
    hypotheses over all steps, the end-of-sentence step included, divided by the (hypothesis, step)
    pairs; then the mean over the sentences. Padding and finished hypotheses do not count. For
    global attention it is the mean length of the sources.
    """

    def __init__(self) -> None:
        self._ratios: list[float] = []
        self._encoding: list[int] = []

    def add(self, computed: Tensor, pairs: Tensor, encoding: Tensor) -> None:
        """Add the sentences of a batch.

        Args:
            computed: [B] scores computed in decoding.
            pairs: [B] (hypothesis, step) pairs.
            encoding: [B] scores computed once, while reading the source.
        """
        self._ratios += (computed.double() / pairs).tolist()
        self._encoding += encoding.tolist()

    def merge(self, other: Tally) -> None:
        """Add the sentences of another tally."""
        self._ratios += other._ratios
        self._encoding += other._encoding

    def to_lists(self) -> tuple[list[float], list[int]]:
        """Return the contents, for another process."""
        return self._ratios, self._encoding

    @classmethod
    def from_lists(cls, ratios: list[float], encoding: list[int]) -> Tally:
        """Rebuild from ``to_lists``."""
        tally = cls()
        tally._ratios, tally._encoding = ratios, encoding
        return tally

    @property
    def cps(self) -> float | None:
        """Mean score computations a step; None if no sentence was translated."""
        return sum(self._ratios) / len(self._ratios) if self._ratios else None

    @property
    def encoding(self) -> float | None:
        """Mean score computations a sentence before the first step (memory attention: K S)."""
        return sum(self._encoding) / len(self._encoding) if self._encoding else None
