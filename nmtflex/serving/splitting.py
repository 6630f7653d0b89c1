"""A text of any length, taken apart into sentences that a model translates, and put together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from nmtflex.text.paragraphs import Paragraph, ParagraphSplitter
from nmtflex.text.pipeline import TextPipeline

_LINE = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


class SplitText(NamedTuple):
    """A text: its lines, and what ends each of them."""

    lines: list[Paragraph]
    ends: list[str]

    @property
    def units(self) -> list[str]:
        """What is translated, in order."""
        return [unit for line in self.lines for unit in line.units]


class TextSplitter:
    """Takes texts apart for one model.

    Args:
        pipeline: The model's.
        join: Most sentences that are translated together.
        longest: Most source tokens that are translated together.
    """

    def __init__(self, pipeline: TextPipeline, join: int, longest: int) -> None:
        self.sentences = ParagraphSplitter(pipeline, join, longest)

    def split(self, text: str) -> SplitText:
        """Take a text apart."""
        ends = [match[0] for match in _LINE.finditer(text)]
        lines = _LINE.split(text)
        return SplitText([self.sentences.split(line) for line in lines], [*ends, ""])

    def join(self, split: SplitText, translations: Sequence[str]) -> str:
        """Put a text together from the translations of its units; white space is the source's."""
        lines = self._pieces(split, translations)
        return "".join("".join(line) + end for line, end in zip(lines, split.ends, strict=True))

    def places(self, split: SplitText, translations: Sequence[str]) -> list[tuple[int, int]]:
        """Return where each unit begins in the text, and its translation in the joined text."""
        source = [
            [line.lead, *chain.from_iterable(zip(line.units, line.spaces, strict=True))]
            for line in split.lines
        ]
        target = self._pieces(split, translations)
        return list(zip(_starts(source, split.ends), _starts(target, split.ends), strict=True))

    def _pieces(self, split: SplitText, translations: Sequence[str]) -> list[list[str]]:
        """Return what the translations of all units make of each line."""
        left: Iterator[str] = iter(translations)
        return [
            self.sentences.parts(line, list(islice(left, len(line.units)))) for line in split.lines
        ]


def _starts(lines: Sequence[Sequence[str]], ends: Sequence[str]) -> Iterator[int]:
    """Yield where each unit begins, in lines of lead, unit, space, unit, space and so on."""
    place = 0
    for pieces, end in zip(lines, ends, strict=True):
        for number, piece in enumerate(pieces):
            if number % 2:
                yield place
            place += len(piece)
        place += len(end)


def has_words(text: str) -> bool:
    """Whether there is anything to translate: a letter or a digit."""
    return any(map(str.isalnum, text))
