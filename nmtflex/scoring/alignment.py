"""Alignment error rate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nmtflex.corpus.links import Link, Links


class AlignmentScore(NamedTuple):
    """How links agree with those of people, over all sentences: rates in percent."""

    aer: float
    precision: float
    recall: float
    links: int  # found
    sure: int
    possible: int  # sure ones among them

    @property
    def signature(self) -> str:
        """The links that were counted."""
        return f"links:{self.links}|sure:{self.sure}|possible:{self.possible}"


def score_alignments(found: Sequence[Iterable[Link]], gold: Sequence[Links]) -> AlignmentScore:
    """Compare links with gold links that are sure or possible.

    Och and Ney (2003), https://aclanthology.org/J03-1002, section 6.1, with A found, S sure and P
    possible, S in P, each counted over all sentences::

        recall = |A & S| / |S|
        precision = |A & P| / |A|
        AER = 1 - (|A & S| + |A & P|) / (|A| + |S|)

    Precision is 0 if nothing is found.

    Args:
        found: The links of each sentence.
        gold: As many.

    Raises:
        ValueError: The numbers of sentences differ, or no link is sure.
    """
    links = sure = possible = hits = allowed = 0
    for own, expected in zip(found, gold, strict=True):
        own = set(own)
        links += len(own)
        sure += len(expected.sure)
        possible += len(expected.possible)
        hits += len(own.intersection(expected.sure))
        allowed += len(own.intersection(expected.possible))
    if not sure:
        raise ValueError(f"no sure link in {len(gold)} sentences")
    return AlignmentScore(
        aer=100 * (1 - (hits + allowed) / (links + sure)),
        precision=100 * allowed / links if links else 0.0,
        recall=100 * hits / sure,
        links=links,
        sure=sure,
        possible=possible,
    )
