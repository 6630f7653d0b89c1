"""Raw lines to tokens and back: none, moses, char, mecab, kytea.

Each tokenizer is a small class in its own file, registered in ``TOKENIZERS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nmtflex.config import nearest
from nmtflex.errors import DataError
from nmtflex.text.tokenizers.base import ASCII_SPACE, WORD, Tokenizer
from nmtflex.text.tokenizers.char import CharTokenizer
from nmtflex.text.tokenizers.japanese import JapaneseTokenizer
from nmtflex.text.tokenizers.kytea import KyteaTokenizer
from nmtflex.text.tokenizers.mecab import MecabTokenizer
from nmtflex.text.tokenizers.moses import MosesTokenizer
from nmtflex.text.tokenizers.normalized import NormalizedTokenizer
from nmtflex.text.tokenizers.plain import NoneTokenizer

__all__ = [
    "ASCII_SPACE", "TOKENIZERS", "WORD", "CharTokenizer", "JapaneseTokenizer", "KyteaTokenizer",
    "MecabTokenizer", "MosesTokenizer", "NoneTokenizer", "NormalizedTokenizer", "Tokenizer",
    "build_restorer", "build_tokenizer",
]  # fmt: skip

TOKENIZERS: dict[str, type[Tokenizer]] = {
    tokenizer.name: tokenizer
    for tokenizer in (NoneTokenizer, MosesTokenizer, CharTokenizer, MecabTokenizer, KyteaTokenizer)
}


def build_tokenizer(description: Mapping[str, Any], model: Path | None = None) -> Tokenizer:
    """Build a tokenizer from what ``describe`` returned.

    Args:
        description: ``name``, the arguments of that class, and ``normalize`` if the text is
            normalised first.
        model: The model file, if the tokenizer needs one.

    Raises:
        DataError: No tokenizer or normalisation has that name, or a package or the model is missing
            or unusable.
    """
    kind, settings = _chosen(description)
    if kind.needs_model:
        settings["model"] = model
    tokenizer = kind(**settings)
    normalize = description.get("normalize", "none")
    return tokenizer if normalize == "none" else NormalizedTokenizer(tokenizer, normalize)


def build_restorer(description: Mapping[str, Any]) -> Callable[[str], str]:
    """Return a function from a line of tokens, separated by spaces, to a raw line.

    It needs no model and no dictionary, and does not undo normalisation.

    Raises:
        DataError: No tokenizer has that name, or its package is missing.
    """
    kind, settings = _chosen(description)
    return kind.restorer(settings)


def _chosen(description: Mapping[str, Any]) -> tuple[type[Tokenizer], dict[str, Any]]:
    """Return the class of a description, and its arguments."""
    name = description.get("name")
    if name not in TOKENIZERS:
        raise DataError(f"unknown tokenizer {name!r}{nearest(str(name), TOKENIZERS)}")
    other = ("name", "version", "normalize")
    return TOKENIZERS[name], {key: value for key, value in description.items() if key not in other}
