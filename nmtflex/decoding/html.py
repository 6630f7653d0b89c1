"""Translation of HTML: its texts in sentences, and its tags where their words went."""

from __future__ import annotations

from collections.abc import Sequence

from nmtflex.decoding.character_links import character_links
from nmtflex.decoding.translator import Translator
from nmtflex.markup.document import Linked
from nmtflex.markup.units import HtmlUnits
from nmtflex.text.glossary import Glossary


def translate_html(
    translator: Translator, html: str, attributes: bool = False, glossary: Glossary | None = None
) -> str:
    """Translate a page, or a fragment of one.

    Args:
        translator: Loaded with ``split="sentences"``, it splits the texts of the document;
            otherwise each is translated as a whole. A model without weights over source positions
            cannot align words, so tags stay where they stood in proportion.
        html: The document; see ``HtmlDocument``.
        attributes: Whether the attributes alt, title and placeholder are translated too.
        glossary: Terms that come out as given.

    Raises:
        OptionError: justhtml is not installed.
    """
    document = HtmlUnits(html, translator.splitter, attributes)
    return document.join(translate_units(translator, document.units, glossary))


def translate_units(
    translator: Translator, units: Sequence[str], glossary: Glossary | None = None
) -> list[Linked]:
    """Return the translation of each unit, with links between characters.

    The links of a model without weights over source positions are empty.

    Args:
        translator: Any; it does not split these.
        units: From ``HtmlUnits``.
        glossary: Terms that come out as given.
    """
    whole = translator.unsplit()
    found = [best for best, *_ in whole.n_best(units, 1, align=whole.aligned, glossary=glossary)]
    whole.warn_of_cuts(found)
    return [
        (best.text, character_links(whole.pipeline, unit, best))
        for unit, best in zip(units, found, strict=True)
    ]
