"""What a translation must contain, and how far a hypothesis has come with it.

Legend: B sentences, P terms of a sentence, L tokens of a term, N hypotheses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmtflex.decoding.ensemble import Ids
from nmtflex.text.edges import Edges
from nmtflex.text.vocabulary import PAD_ID

Array = NDArray[Any]


class Constraints(NamedTuple):
    """What a translation must begin with and contain.

    ``prefix`` has its first tokens. The tokens of each of ``terms`` stand in it once, side by side
    and as words of their own.
    """

    prefix: Ids
    terms: Sequence[Ids]

    @property
    def tokens(self) -> int:
        """The fewest tokens of a translation."""
        return len(self.prefix) + sum(map(len, self.terms))


FREE = Constraints([], [])


class Terms:
    """The terms of a batch of sentences.

    Progress [N, P] counts the tokens of each term that a hypothesis ends in. It is L when the term
    is complete, and L + 1 once the next token has not made the last word another one.

    Args:
        terms: Of each of B sentences.
        edges: Of words, of the target side.
    """

    def __init__(self, terms: Sequence[Sequence[Ids]], edges: Edges) -> None:
        self._edges = edges
        self.count = max(1, *map(len, terms))  # P; no array is empty
        longest = max((len(term) for each in terms for term in each), default=0)
        # Two more places, so that there is a next token behind the last one.
        self._ids = np.full((len(terms), self.count, longest + 2), PAD_ID)
        self._lengths = np.full((len(terms), self.count), -1)  # nothing is lacking of no term
        for row, each in enumerate(terms):
            for place, term in enumerate(each):
                self._ids[row, place, : len(term)] = term
                self._lengths[row, place] = len(term)

    def missing(self, rows: Array, progress: Array) -> Array:
        """Return the tokens [N] that hypotheses need for the terms they lack."""
        lengths = self._lengths[rows]
        lacking = progress < lengths
        begun = np.where(lacking, progress, 0).max(1, initial=0)
        return (lengths * lacking).sum(1) - begun

    def stage(self, rows: Array, progress: Array) -> Array:
        """Return how many terms [N] hypotheses have, one that is begun included."""
        lacking = progress < self._lengths[rows]
        return (~lacking).sum(1) + (lacking & (progress > 0)).any(1)

    def goes_on(self, rows: Array, before: Array, progress: Array) -> Array:
        """Return whether the last token [N] is one of a term behind its first."""
        moved = (before > 0) & (progress == before + 1)
        return (moved & (progress <= self._lengths[rows])).any(1)

    def next(self, rows: Array, last: Array, progress: Array, spare: Array) -> Array:
        """Return the next token of each term [N, P]; PAD where it has none or cannot begin.

        Args:
            rows: [N], the sentence of each hypothesis.
            last: [N], its last token.
            progress: [N, P].
            spare: [N], tokens that it may have besides the terms it lacks. Without any, terms go
                on, or begin even within a word.
        """
        ids = self._ids[rows]
        found = np.take_along_axis(ids, progress[:, :, None], 2)[:, :, 0]
        begun = (found != PAD_ID) & (progress > 0)
        overdue = spare <= 0
        begins = self._edges.between(last[:, None], ids[:, :, 0]) | overdue[:, None]
        begins &= (progress == 0) & ~(overdue & begun.any(1))[:, None]
        return np.where(begun | begins, found, PAD_ID)

    def advance(
        self, rows: Array, last: Array, progress: Array, tokens: Array, spare: Array
    ) -> Array:
        """Return the progress [N, P] of hypotheses that go on with ``tokens`` [N].

        Terms do not overlap: of several that a token completes, the longest is complete, and the
        others begin anew.
        """
        ids, lengths = self._ids[rows], self._lengths[rows]
        edge = self._edges.between(last, tokens)[:, None]
        expected = self.next(rows, last, progress, spare) == tokens[:, None]
        begun = edge & (ids[:, :, 0] == tokens[:, None])
        moved = np.where(expected, progress + 1, begun.astype(np.int64))
        # Another word after all, if there is room for the term once more.
        undone = (progress == lengths) & ~edge & (spare[:, None] > lengths)
        moved = np.where((progress < lengths) | undone, moved, lengths + 1)
        complete = moved == lengths
        longest = np.where(complete, lengths, 0).argmax(1)[:, None]
        reset = complete.any(1)[:, None] & (moved <= lengths)
        return np.where(reset & (longest != np.arange(self.count)), 0, moved)
