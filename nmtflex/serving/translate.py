"""What a worker process answers about each sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmtflex.decoding.translator import Translator


def translate_units(
    translator: Translator, texts: Sequence[str], options: dict[str, Any]
) -> list[dict[str, Any]]:
    """Translate sentences, all with the same options.

    Args:
        translator: Of an open run.
        texts: Raw sentences.
        options: ``n_best``, and ``links``: whether to link characters.

    Returns:
        For each sentence its ``texts``, the best first, their ``scores``, natural logarithms of
        their probabilities, and the ``links`` of the best one; see ``character_links``.
    """
    from nmtflex.decoding.character_links import character_links

    count, links = options["n_best"], options["links"] and translator.aligned
    beam = max(translator.search.beam, count)
    found = translator.translate_batch(texts, n_best=count, align=links, beam=beam)
    return [
        {
            "texts": [one.text for one in translations],
            "scores": [one.log_probability for one in translations],
            "links": character_links(translator.pipeline, text, translations[0]) if links else [],
        }
        for text, translations in zip(texts, found, strict=True)
    ]
