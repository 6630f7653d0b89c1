"""The source word that each word of a translation attends to most."""

from __future__ import annotations

from typing import NamedTuple

from nmtflex.decoding.links import sum_subwords
from nmtflex.decoding.traces import most_attended
from nmtflex.decoding.translation import Translation
from nmtflex.text.pipeline import SidePipeline, TextPipeline


class Alignment(NamedTuple):
    """Words, and for each target word the place of the source word with the largest weight."""

    source: list[str]  # as the raw line has them
    target: list[str]
    attended: list[int]


def align(pipeline: TextPipeline, line: str, translation: Translation) -> Alignment:
    """Take the alignment of a translation from its trace.

    Weights are summed over the subwords of a source word, and over the steps of a target word.

    Args:
        pipeline: The one that made it.
        line: The raw source.
        translation: With a trace; without one (of an empty source) there are no words.

    Raises:
        ValueError: The mechanism has no weights over source positions.
    """
    if translation.trace is None or not translation.tokens:
        return Alignment(_words(pipeline.source, line), [], [])
    weights = translation.trace.weights
    if weights is None:
        raise ValueError(f"no weights to align {translation.text!r} by")
    by_word = sum_subwords(pipeline, line, translation.tokens, weights, translation.cuts)
    attended = most_attended(by_word)
    return Alignment(_words(pipeline.source, line), translation.words, attended.tolist())


def _words(source: SidePipeline, line: str) -> list[str]:
    """Return the raw text of each word of a line."""
    texts = source.attended_words(line)
    return [texts[start] for start in source.word_starts(source.segment(line))]
