"""Scores by source length, since attention is judged on long sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Generic, NamedTuple, TypeVar

from nmtflex.errors import DataError

EDGES = (10, 20, 30, 40, 50)

Result = TypeVar("Result")


class Bucket(NamedTuple, Generic[Result]):
    """The sentences whose source lengths lie in a range, and their score."""

    label: str  # "11-20", ">50"
    low: int  # tokens, the shortest
    high: int | None  # tokens, the longest; None: no limit
    sentences: int
    score: Result | None  # None where there are no sentences


def score_by_length(
    score: Callable[..., Result],
    source_lengths: Sequence[int],
    hypotheses: Sequence[Any],
    *references: Sequence[Any],
    edges: Sequence[int] = EDGES,
) -> list[Bucket[Result]]:
    """Score the sentences of each range of source lengths.

    Args:
        score: Called with a bucket's hypotheses and references, like ``corpus_score`` of a metric.
        source_lengths: Tokens of each source sentence.
        hypotheses: Sentences.
        references: One sequence of sentences for each reference.
        edges: Longest source of each bucket but the last, in tokens, increasing from at least 1.

    Returns:
        All buckets, including empty ones; if there are empty sources, their bucket comes first.

    Raises:
        DataError: The numbers of sentences differ, or ``score`` raises it.
        ValueError: The edges do not increase.
    """
    if any(high <= low for low, high in pairwise((0, *edges))):
        raise ValueError(f"edges must increase from at least 1, not {list(edges)}")
    for sentences in (hypotheses, *references):
        if len(sentences) != len(source_lengths):
            raise DataError(f"{len(source_lengths)} sources, but {len(sentences)} sentences")
    buckets = []
    for low, high in _ranges(edges):
        where = [
            place
            for place, length in enumerate(source_lengths)
            if low <= length and (high is None or length <= high)
        ]
        if high == 0 and not where:
            continue
        texts = [[side[place] for place in where] for side in (hypotheses, *references)]
        found = score(*texts) if where else None
        buckets.append(Bucket(_label(low, high), low, high, len(where), found))
    return buckets


def _ranges(edges: Sequence[int]) -> list[tuple[int, int | None]]:
    """Return the shortest and the longest length of each bucket."""
    lows = (0, *(edge + 1 for edge in (0, *edges)))
    return list(zip(lows, (0, *edges, None), strict=True))


def _label(low: int, high: int | None) -> str:
    if high is None:
        return f">{low - 1}"
    return str(low) if low == high else f"{low}-{high}"
