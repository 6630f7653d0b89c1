"""The translations of a line's sentences, joined to that of the line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from nmtflex.config import SearchConfig
from nmtflex.decoding.confidence import mean_score
from nmtflex.decoding.translation import Translation
from nmtflex.text.paragraphs import Paragraph, ParagraphSplitter


def joined(
    splitter: ParagraphSplitter,
    paragraphs: Sequence[Paragraph],
    found: Sequence[Translation],
    search: SearchConfig,
) -> Iterator[Translation]:
    """Yield the translation of each line.

    Its log-probability is the sum over its units, and its score follows from it and from the number
    of all tokens, the end of each unit included.

    Args:
        splitter: What split the lines.
        paragraphs: The lines in units.
        found: The translation of each unit of all lines, in order.
        search: Has the length penalty.
    """
    left = iter(found)
    for paragraph in paragraphs:
        parts = list(islice(left, len(paragraph.units)))
        texts = [part.text for part in parts]
        tokens = [token for part in parts for token in part.tokens]
        total = sum((part.log_probability for part in parts), 0.0)
        length = len(tokens) + len(parts)
        yield Translation(
            text=splitter.join(paragraph, texts),
            tokens=tokens,
            words=[word for part in parts for word in part.words],
            score=total / max(1, length) ** search.length_penalty,
            log_probability=total,
            trace=None,
            ids=[number for part in parts for number in part.ids],
            truncated=any(part.truncated for part in parts),
            units=list(zip(paragraph.units, texts, strict=True)),
            log_probabilities=[value for part in parts for value in part.log_probabilities],
            word_scores=(scores := [score for part in parts for score in part.word_scores]),
            confidence=mean_score(scores),
            unaligned=_unaligned(parts),
        )


def _unaligned(parts: Sequence[Translation]) -> float | None:
    """Return the mean ratio of unaligned words, of the parts that have one, by their words."""
    known = [(one.unaligned, len(one.words)) for one in parts if one.unaligned is not None]
    words = sum(count for _, count in known)
    return sum(ratio * count for ratio, count in known) / words if words else None
