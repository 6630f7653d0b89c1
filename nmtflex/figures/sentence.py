"""What attention looked at in one sentence, ready for a figure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from nmtflex.decoding.traces import Numbers, SentenceTrace
from nmtflex.decoding.translator import Translator
from nmtflex.errors import DataError
from nmtflex.text.pipeline import SidePipeline, TextPipeline

END = "</s>"


class Looked(NamedTuple):
    """A sentence, its best translation, and the trace of its T steps."""

    source: list[str]  # S tokens
    target: list[str]  # T tokens, the end of the sentence last
    trace: SentenceTrace
    slots: bool = False  # weights are sums over slots
    dots: str = ""  # what the focus is, in words

    @property
    def computed(self) -> str:
        """Return how many scores a step computed (CPS), of how many positions."""
        mean = float(self.trace.computed.mean())
        return f"CPS {mean:.3g}, {len(self.source)} source tokens"

    @property
    def outside(self) -> Numbers | None:
        """Which positions [T, S] were not computed; None without a window."""
        import numpy as np

        start, stop = self.trace.window_start, self.trace.window_stop
        if start is None or stop is None:
            return None
        places = np.arange(len(self.source))
        return (places < start[:, None]) | (places >= stop[:, None])


def look_at(translator: Translator, line: str) -> Looked:
    """Translate a raw line, and return what attention looked at.

    Raises:
        DataError: The line has no words.
    """
    [[best]] = translator.n_best([line], 1, trace=True)
    if best.trace is None:
        raise DataError(f"the sentence {line!r} has no words, so there are no steps to draw")
    return Looked(*shown_tokens(translator.pipeline, line, best.tokens), best.trace)


def shown_tokens(
    pipeline: TextPipeline, line: str, target: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the S shown tokens of a raw line and the T of its translation, with its end."""
    source = raw_tokens(pipeline.source, pipeline.source.segment(line))
    return source, [*raw_tokens(pipeline.target, target), END]


def raw_tokens(side: SidePipeline, pieces: Sequence[str]) -> list[str]:
    """Return tokens as in raw text: ``'`` for ``&apos;``; parts of words do not change."""
    subwords = side.subwords
    if subwords is None:
        return [side.tokenizer.surface(piece)[0] for piece in pieces]
    starts = [*side.word_starts(pieces), len(pieces)]
    whole = {
        start
        for start, end in pairwise(starts)
        if end == start + 1 and (subwords.opens(pieces[start]) or subwords.closes(pieces[start]))
    }
    return [
        side.tokenizer.surface(subwords.join([piece])[0])[0] if place in whole else piece
        for place, piece in enumerate(pieces)
    ]
