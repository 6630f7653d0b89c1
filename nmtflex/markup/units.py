"""HTML in units that are translated by themselves, and put together again.

Whoever translates the units needs nothing of the document, so that may happen in another process.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from nmtflex.markup.document import HtmlDocument, Linked
from nmtflex.markup.placing import Link
from nmtflex.markup.proportion import by_position
from nmtflex.text.paragraphs import Paragraph, ParagraphSplitter


class HtmlUnits:
    """A document in units, each of which is translated by itself.

    Args:
        html: The document; see ``HtmlDocument``.
        splitter: Splits its texts into sentences; None leaves them whole.
        attributes: Whether the attributes alt, title and placeholder are translated too.

    Attributes:
        units: What to translate, in the order of the document.

    Raises:
        OptionError: justhtml is not installed.
    """

    def __init__(
        self, html: str, splitter: ParagraphSplitter | None, attributes: bool = False
    ) -> None:
        self._document = HtmlDocument(html, attributes)
        self._splitter = splitter
        self._paragraphs = [
            splitter.split(text) if splitter else Paragraph("", [text], [""])
            for text in self._document.texts
        ]
        self.units = [unit for paragraph in self._paragraphs for unit in paragraph.units]

    def join(self, translations: Sequence[Linked]) -> str:
        """Return the document with translations.

        Args:
            translations: Of each unit the text and its links, which are pairs of a span in the unit
                and a span in the translation, start and end in characters; lists do as well as
                tuples. Without links, words are linked by position.

        Raises:
            ValueError: There is another number of translations, or a link is outside of its texts.
        """
        if len(translations) != len(self.units):
            raise ValueError(f"{len(translations)} translations of {len(self.units)} units")
        left = iter(translations)
        return self._document.render([
            self._joined(paragraph, [next(left) for _ in paragraph.units])
            for paragraph in self._paragraphs
        ])

    def _joined(self, paragraph: Paragraph, found: Sequence[Linked]) -> Linked:
        """Join the translations of a text's units, and their links."""
        texts = [text.strip() for text, _ in found]
        units = zip(paragraph.units, paragraph.spaces, strict=True)
        sources = [paragraph.lead, *(part for unit in units for part in unit)]
        targets = self._splitter.parts(paragraph, texts) if self._splitter else ["", *texts, ""]
        before = zip(_starts(sources)[1::2], _starts(targets)[1::2], strict=True)
        links: list[Link] = []
        for unit, (text, own), (source, target) in zip(paragraph.units, found, before, strict=True):
            lead = len(text) - len(text.lstrip())
            links += [
                (_moved(one, source), _moved(other, target - lead))
                for one, other in own or by_position(unit, text)
            ]
        return "".join(targets), links


def _starts(parts: Sequence[str]) -> list[int]:
    """Return where each part begins in all of them."""
    return list(accumulate(map(len, parts[:-1]), initial=0))


def _moved(span: Sequence[int], by: int) -> tuple[int, int]:
    return span[0] + by, span[1] + by
