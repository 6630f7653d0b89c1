"""What a worker process answers about each sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nmtflex.serving.explain import translate_explained

if TYPE_CHECKING:
    from nmtflex.decoding.translation import Translation
    from nmtflex.decoding.translator import Translator


def translate_units(
    translator: Translator, texts: Sequence[str], options: dict[str, Any]
) -> list[dict[str, Any]]:
    """Translate sentences, all with the same options.

    Args:
        translator: Of an open run.
        texts: Raw sentences.
        options: ``n_best``; ``terms``, pairs that must come out as given; ``links`` and
            ``word_scores``, what the answers have; with ``explain`` those of
            ``translate_explained`` too.

    Returns:
        For each sentence its ``texts``, the best first, their ``scores``, natural logarithms of
        their probabilities, and of the best one the ``links`` (see ``character_links``), the number
        of ``words``, and ``confidence`` and ``unaligned`` (see ``Translation``). With ``explain``
        an ``explanation``.
    """
    from nmtflex.decoding.character_links import character_links

    if options.get("explain"):
        explained = (translate_explained(translator, text, options) for text in texts)
        return [_answer(found) | {"explanation": about} for found, about in explained]

    count, links = options["n_best"], options["links"] and translator.aligned
    beam = max(translator.search.beam, count)
    found = translator.translate_batch(
        texts,
        n_best=count,
        align=links,
        beam=beam,
        word_scores=options["word_scores"],
        glossary=dict(options["terms"]) or None,
    )
    if not links:
        return list(map(_answer, found))
    return [
        _answer(best) | {"links": character_links(translator.pipeline, text, best[0])}
        for text, best in zip(texts, found, strict=True)
    ]


def _answer(translations: Sequence[Translation]) -> dict[str, Any]:
    return {
        "texts": [one.text for one in translations],
        "scores": [one.log_probability for one in translations],
        "links": [],
        "words": len(translations[0].words),
        "confidence": translations[0].confidence,
        "unaligned": translations[0].unaligned,
    }
