"""What a caller asks of the translations of some lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypedDict

from nmtflex.decoding.demands import Demand
from nmtflex.text.glossary import Glossary


class Asked(TypedDict, total=False):
    """What else may be asked of ``Translator.n_best``.

    Attributes:
        trace: Whether the best translation of each line carries a ``trace``.
        align: Whether every translation carries its word alignment, ``attended``.
        word_scores: Whether every translation carries ``word_scores``, ``confidence`` and
            ``unaligned``. The run must have been calibrated: ``nmtflex calibrate RUN``.
        limits: Most tokens of each line's translation, or of that of each sentence of it, if fewer
            than the search options allow.
        glossary: Terms that come out as given in every translation of a line that has them. They
            change ``text`` and ``words``; tokens and scores are those of the search.
        prefixes: For each line the text that its translations begin with, perhaps empty. White
            space around it does not count. It ends at the end of a subword, and with BPE of a word.
            A line without words stays without any.
    """

    trace: bool
    align: bool
    word_scores: bool
    limits: Sequence[int] | None
    glossary: Glossary | None
    prefixes: Sequence[str] | None


class Lines(NamedTuple):
    """Lines that are translated as wholes, and what is asked of them."""

    texts: Sequence[str]
    demands: Sequence[Demand | None]  # of each
    limits: Sequence[int] | None  # most tokens of each translation
    best: int  # translations of each
    trace: bool
    align: bool
    word_scores: bool

    @property
    def traced(self) -> bool:
        """Whether it takes a look at what attention has seen."""
        return self.trace or self.align or self.word_scores

    def at(self, places: Sequence[int]) -> Lines:
        """Return some of the lines."""
        return self._replace(
            texts=[self.texts[place] for place in places],
            demands=[self.demands[place] for place in places],
            limits=self.limits and [self.limits[place] for place in places],
        )
