"""Where the words of a line stand in its raw text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nmtflex.text.pipeline import SidePipeline
from nmtflex.text.spans import LOOKAHEAD, raw_spans
from nmtflex.text.tokenizers import Tokenizer

Span = tuple[int, int]  # start and end, in characters
Places = list[Span | None]  # of each word as alignments count; None for one that was not found


def source_places(side: SidePipeline, line: str) -> Places:
    """Return where each word of a raw line stands in it.

    Args:
        side: The pipeline of its language.
        line: Raw; a model reads at most ``longest`` subwords of it, and later words are not found.
    """
    text, places = side.tokenizer.align(line)
    words = side.join(side.segment(line))
    spans = list(_found(text, words, side.tokenizer))
    if places is not None:
        known = [span for span in spans if span]
        raw = iter(raw_spans(known, places, len(line)))
        spans = [None if span is None else next(raw) for span in spans]
    return _by_number(spans, side.tokenizer.word_numbers(words))


def target_places(side: SidePipeline, text: str, words: Sequence[str]) -> Places:
    """Return where each word of a translation stands in its text.

    Args:
        side: The pipeline of its language.
        text: The words after detokenisation.
        words: Tokens.
    """
    spans = list(_found(text, words, side.tokenizer))
    return _by_number(spans, side.tokenizer.word_numbers(words))


def _found(text: str, words: Sequence[str], tokenizer: Tokenizer) -> Iterator[Span | None]:
    """Yield where each word stands, after the word before it and not far from it."""
    cursor = 0
    for word in words:
        raw = tokenizer.surface(word)[0]
        while cursor < len(text) and text[cursor].isspace() and not raw[:1].isspace():
            cursor += 1
        start = text.find(raw, cursor, cursor + LOOKAHEAD + len(raw)) if raw else -1
        if start < 0:
            yield None
            continue
        cursor = start + len(raw)
        yield start, cursor


def _by_number(spans: Sequence[Span | None], numbers: Sequence[int]) -> Places:
    """Join the spans of tokens with the same number, in order and without overlaps."""
    found: Places = [None] * (1 + max(numbers, default=-1))
    end = 0
    for span, number in zip(spans, numbers, strict=True):
        if span is None or number < 0:
            continue
        start = max(span[0], end)
        if start < span[1]:
            before = found[number]
            end = span[1]
            found[number] = (before[0] if before else start), end
    return found
