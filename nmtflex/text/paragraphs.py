"""Lines of several sentences, split into what a model translates at once, and joined again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nmtflex.text.pipeline import TextPipeline
from nmtflex.text.sentences import sentences

# The end of a clause, with the white space after it.
_CLAUSE = re.compile(r"(?:[,;:،؛)\]](?=\s)|[、，；：）」』…—–])\s*")
_SPACE = re.compile(r"\s+")
WIDEST = 32  # characters a token, when a long text is cut piece by piece


class Paragraph(NamedTuple):
    """A line in parts: ``lead``, then each unit with the space after it."""

    lead: str  # white space
    units: list[str]  # without white space at either end
    spaces: list[str]


class ParagraphSplitter:
    """Splits lines into units of sentences, and joins the translations of the units.

    Args:
        pipeline: Of the run; ``longest`` of its source side is not set.
        join: Most sentences of a unit.
        longest: Most source tokens of a unit.
    """

    def __init__(self, pipeline: TextPipeline, join: int, longest: int) -> None:
        self._pipeline = pipeline
        self._source = pipeline.source
        self._join = join
        self._longest = longest

    def split(self, line: str) -> Paragraph:
        """Split a raw line; joined, lead, units and spaces are the line.

        A unit has up to ``join`` sentences, as equally many as possible, and fewer if it would have
        more than ``longest`` tokens. A longer sentence is cut at the end of a clause, else at white
        space, else between tokens.
        """
        whole = list(sentences(line, self._source.language))
        return _paragraph(self._units(whole))

    def join(self, paragraph: Paragraph, translations: Sequence[str]) -> str:
        """Join the translations of all units to a line; see ``parts``."""
        return "".join(self.parts(paragraph, translations))

    def parts(self, paragraph: Paragraph, translations: Sequence[str]) -> list[str]:
        """Return what makes a line: the lead, then each translation and the space after it.

        White space is that of the source. Where the source has what is usual after a sentence, so
        has the translation: a space, or nothing after full-width characters.
        """
        joined = [paragraph.lead]
        parts = zip(paragraph.units, translations, paragraph.spaces, strict=True)
        for place, (unit, text, space) in enumerate(parts, start=1):
            text = text.strip()
            inside = place < len(paragraph.units)
            if inside and space == self._source.usual_space(unit):
                space = self._pipeline.target.usual_space(text)
            joined += [text, space]
        return joined

    def _units(self, whole: Sequence[str]) -> Iterator[str]:
        """Yield the text of each unit, with the white space around it."""
        start = 0
        while start < len(whole):
            left = len(whole) - start
            size = -(-left // -(-left // self._join))
            while size > 1 and not self._fits("".join(whole[start : start + size])):
                size -= 1
            text = "".join(whole[start : start + size])
            start += size
            if self._fits(text):
                yield text
            else:
                yield from self._cut(text)

    def _fits(self, text: str) -> bool:
        return len(self._source.encode(text)) <= self._longest

    def _cut(self, text: str) -> Iterator[str]:
        """Yield the parts of a sentence that is too long."""
        while text:
            head = text[: WIDEST * self._longest]
            end = self._end(head, whole=len(head) == len(text))
            while end > 1 and not self._fits(text[:end]):  # alone, it may have other tokens
                end //= 2
            yield text[:end]
            text = text[end:]

    def _end(self, text: str, *, whole: bool) -> int:
        """Return where to cut a text; its length if it needs no cut.

        Args:
            text: The beginning of what is left.
            whole: Whether it is all that is left; it is then cut into parts of equal length.
        """
        starts = [start for start, _ in self._source.spans(text)]
        most = self._longest
        if len(starts) <= most:
            most = len(starts)
            if whole:
                return len(text)
        elif whole:
            most = -(-len(starts) // -(-len(starts) // most))
        starts.append(len(text))
        least, last = starts[most // 2], max(1, starts[most])
        for pattern in (_CLAUSE, _SPACE):
            ends = [match.end() for match in pattern.finditer(text, 0, last)]
            if ends and ends[-1] > least:
                return ends[-1]
        return last


def _paragraph(parts: Iterator[str]) -> Paragraph:
    """Move the white space around parts between them."""
    units: list[str] = []
    spaces = [""]  # the first one is the lead
    for part in parts:
        unit = part.strip()
        if not unit:
            spaces[-1] += part
            continue
        start = part.index(unit)
        spaces[-1] += part[:start]
        units.append(unit)
        spaces.append(part[start + len(unit) :])
    return Paragraph(spaces[0], units, spaces[1:])
