"""The words that WAT scores: the evaluation procedure of the Workshop on Asian Translation.

Japanese: normalise, segment, rejoin; English: half width, then Moses. System output and reference
are treated alike. WAT segments with KyTea 0.4.6 and the model jp-0.4.2-utf8-1; another model gives
other scores, so the signature has the model's hash. MeCab instead of KyTea is a variant, and the
signature says so. For English, WAT used Moses 2.1.1 of 2014; this is the current script.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from nmtflex.errors import OptionError
from nmtflex.text.tokenizers import (
    WORD,
    JapaneseTokenizer,
    MosesTokenizer,
    Tokenizer,
    build_tokenizer,
)
from nmtflex.text.tokenizers.japanese import join_words
from nmtflex.text.width import FULL_TO_HALF, HALF_TO_FULL

OFFICIAL_SEGMENTER = "kytea"

_UPPER, _LOWER, _DIGIT = "Ａ-Ｚ", "ａ-ｚ", "０-９"
_LETTER = f"[A-Za-z{_UPPER}{_LOWER}]"
_NUMBER_AT_THE_END = re.compile(f"(?<=.)［[{_DIGIT}．]+］$")
_SPACES = re.compile("  +")
_SPACE_AWAY_FROM_LETTERS = re.compile(f"(?<!{_LETTER}) (?!{_LETTER})")
_BETWEEN_DIGITS = re.compile(f"(?<=[{_DIGIT}]) (?=[{_DIGIT}])")
_DECIMAL = re.compile(f"([{_DIGIT}]) ． ([{_DIGIT}])")  # once: １ ． ２ ． ３ is １．２ ． ３
_BETWEEN_LETTERS = re.compile(
    f"(?<=[{_UPPER}]) (?=[{_UPPER}{_LOWER}])|(?<=[{_LOWER}]) (?=[{_LOWER}])"
)


def normalize_japanese(line: str) -> str:
    """Drop a bracketed number at the end and spaces not next to Latin letters; make full width."""
    line = _NUMBER_AT_THE_END.sub("", line.rstrip("\r"))
    line = _SPACES.sub(" ", line.replace("\u3000", " "))
    return _SPACE_AWAY_FROM_LETTERS.sub("", line).translate(HALF_TO_FULL)


def segment_japanese(line: str, segmenter: JapaneseTokenizer) -> str:
    """Separate the words of a normalised line by single spaces."""
    return _SPACES.sub(" ", " ".join(segmenter.pieces(line))).strip(" ")


def rejoin_japanese(line: str) -> str:
    """Rejoin numbers and Latin words of a segmented line."""
    line = _BETWEEN_DIGITS.sub("", line)
    line = _DECIMAL.sub(r"\1．\2", line)
    return _BETWEEN_LETTERS.sub("", line)


class WatJapanese(Tokenizer):
    """WAT's words of Japanese.

    Args:
        segmenter: KyTea, or MeCab for the variant.
    """

    name = "wat-ja"

    def __init__(self, segmenter: JapaneseTokenizer) -> None:
        self._segmenter = segmenter

    @classmethod
    def build(cls, segmenter: JapaneseTokenizer | None) -> Self:
        """Build it with a segmenter, which must be given."""
        if segmenter is None:
            raise OptionError("WAT's procedure for ja needs a segmenter; give --kytea-model FILE")
        return cls(segmenter)

    @classmethod
    def restorer(cls, settings: Mapping[str, Any]) -> Callable[[str], str]:
        """Return a function that joins words; it needs no model."""
        return JapaneseTokenizer.restorer(settings)

    def tokenize(self, line: str) -> list[str]:
        """Normalise, segment and rejoin."""
        segmented = segment_japanese(normalize_japanese(line), self._segmenter)
        return WORD.findall(rejoin_japanese(segmented))

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join without spaces, except between Latin letters; full width is kept."""
        return join_words(tokens)

    def describe(self) -> dict[str, Any]:
        """Return the name and the description of the segmenter."""
        return {**self._segmenter.describe(), "name": self.name, "segmenter": self._segmenter.name}

    def signature(self) -> str:
        """Name procedure, segmenter, version and model; one other than WAT's is a variant."""
        name = self._segmenter.name
        variant = "" if name == OFFICIAL_SEGMENTER else f"|variant:{name}"
        return f"wat:ja{variant}|{self._segmenter.signature()}"


class WatEnglish(Tokenizer):
    """WAT's words of English."""

    name = "wat-en"

    def __init__(self) -> None:
        self._moses = MosesTokenizer("en")

    @classmethod
    def build(cls, segmenter: JapaneseTokenizer | None) -> Self:
        """Build it; a segmenter must not be given."""
        if segmenter is not None:
            raise OptionError(f"WAT's procedure for en takes no segmenter, not {segmenter.name!r}")
        return cls()

    def tokenize(self, line: str) -> list[str]:
        """Make half width, then split with Moses."""
        return self._moses.tokenize(line.translate(FULL_TO_HALF))

    def text(self, line: str) -> str:
        """Return the line of tokens that Moses writes."""
        return self._moses.text(line.translate(FULL_TO_HALF))

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join as Moses does; half width is kept."""
        return self._moses.detokenize(tokens)

    def describe(self) -> dict[str, Any]:
        """Return the name and the description of Moses."""
        return {**self._moses.describe(), "name": self.name}

    def signature(self) -> str:
        """Name procedure, tokenizer and versions."""
        return f"wat:en|{self._moses.signature()}"


def build_segmenter(description: Mapping[str, Any], model: Path | None = None) -> JapaneseTokenizer:
    """Build the segmenter for Japanese, with ``build_tokenizer``.

    Raises:
        OptionError: The description is of a tokenizer that does not segment Japanese.
        DataError: A package or the model is missing or unusable.
    """
    tokenizer = build_tokenizer(description, model)
    if not isinstance(tokenizer, JapaneseTokenizer):
        raise OptionError(
            f"WAT's procedure segments with kytea or mecab, not with {tokenizer.name!r}"
        )
    return tokenizer


def build_wat(language: str, segmenter: JapaneseTokenizer | None = None) -> Tokenizer:
    """Return the procedure for a target language as a tokenizer.

    Args:
        language: "ja" or "en".
        segmenter: For Japanese only: KyTea, or MeCab for the variant.

    Raises:
        OptionError: There is no procedure for that language, or the segmenter is missing or unused.
    """
    if language not in _PROCEDURES:
        known = " and ".join(_PROCEDURES)
        raise OptionError(f"WAT's procedure exists for {known}, not for {language!r}")
    return _PROCEDURES[language].build(segmenter)


def build_wat_restorer(language: str) -> Callable[[str], str]:
    """Return a function from a line of WAT's words to a raw line, except for its width."""
    return _PROCEDURES[language].restorer({})


_PROCEDURES: dict[str, type[WatJapanese | WatEnglish]] = {"ja": WatJapanese, "en": WatEnglish}
