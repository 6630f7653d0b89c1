"""What attention looked at in one sentence, in words that a figure can show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nmtflex.decoding.traces import Numbers, SentenceTrace
from nmtflex.decoding.translator import Translator
from nmtflex.errors import DataError
from nmtflex.text.bpe import MARKER
from nmtflex.text.pipeline import SidePipeline

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
    pipeline = translator.pipeline
    return Looked(
        source=raw_tokens(pipeline.source, pipeline.source.segment(line)),
        target=[*raw_tokens(pipeline.target, best.tokens), END],
        trace=best.trace,
    )


def raw_tokens(side: SidePipeline, pieces: Sequence[str]) -> list[str]:
    """Return tokens as the raw text has them: ``'`` for ``&apos;``; parts of words stay parts."""
    if side.bpe is None:
        return [side.tokenizer.surface(piece)[0] for piece in pieces]
    found, inside = [], False
    for piece in pieces:
        goes_on = piece.endswith(MARKER)
        whole = not inside and not goes_on
        found.append(side.tokenizer.surface(side.bpe.join([piece])[0])[0] if whole else piece)
        inside = goes_on
    return found
