"""What a worker process answers about each sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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
        options: Arguments of ``Translator.translate_batch``.

    Returns:
        For each sentence its ``texts``, the best first, and their ``scores``, natural logarithms of
        their probabilities.
    """
    found = translator.n_best(texts, options["n_best"])
    return [_answer(translations) for translations in found]


def _answer(translations: Sequence[Translation]) -> dict[str, Any]:
    return {
        "texts": [one.text for one in translations],
        "scores": [one.log_probability for one in translations],
        "truncated": translations[0].truncated,
    }
