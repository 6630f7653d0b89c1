"""What attention looked at in one sentence, in words that a figure can show."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from nmtflex.decoding.traces import Numbers, SentenceTrace
from nmtflex.decoding.translator import Translator
from nmtflex.errors import DataError
from nmtflex.text.bpe import MARKER
from nmtflex.text.pipeline import SidePipeline, TextPipeline

END = "</s>"


class Looked(NamedTuple):
    """A sentence, its best translation, and the T steps that made it."""

    source: list[str]  # S tokens
    target: list[str]  # T tokens, the end of the sentence last
    trace: SentenceTrace

    @property
    def computed(self) -> str:
        """Say how many scores a step computed (CPS), of how many positions."""
        mean = float(self.trace.computed.mean())
        return f"CPS {mean:.3g}, {len(self.source)} source tokens"

    @property
    def outside(self) -> Numbers | None:
        """Which positions [T, S] were not computed; None where there is no window."""
        import numpy as np

        start, stop = self.trace.window_start, self.trace.window_stop
        if start is None or stop is None:
            return None
        places = np.arange(len(self.source))
        return (places < start[:, None]) | (places >= stop[:, None])


def look_at(translator: Translator, line: str) -> Looked:
    """Translate a raw line, and return what attention looked at on the way.

    Raises:
        DataError: The line has no words.
    """
    [[best]] = translator.n_best([line], 1, trace=True)
    if best.trace is None:
        raise DataError(f"the sentence {line!r} has no words, so there is no step to draw")
    return Looked(*shown_tokens(translator.pipeline, line, best.tokens), best.trace)


def shown_tokens(
    pipeline: TextPipeline, line: str, target: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the S tokens of a raw line and the T of its translation, the end last, as shown."""
    source = raw_tokens(pipeline.source, pipeline.source.segment(line))
    return source, [*raw_tokens(pipeline.target, target), END]


def raw_tokens(side: SidePipeline, pieces: Sequence[str]) -> list[str]:
    """Return tokens as the raw text has them: ``'`` for ``&apos;``; parts of words stay parts."""
    if side.bpe is None:
        return [side.tokenizer.surface(piece)[0] for piece in pieces]
    starts = [*side.word_starts(pieces), len(pieces)]
    whole = {
        start
        for start, end in pairwise(starts)
        if end == start + 1 and not pieces[start].endswith(MARKER)
    }
    return [
        side.tokenizer.surface(side.bpe.join([piece])[0])[0] if place in whole else piece
        for place, piece in enumerate(pieces)
    ]
