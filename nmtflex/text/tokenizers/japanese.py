"""The base class for segmenters of Japanese, which is written without spaces."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from nmtflex.text.tokenizers.base import ASCII_SPACE, WORD, Tokenizer

_LATIN = re.compile("[A-Za-zÀ-ÖØ-öø-ɏＡ-Ｚａ-ｚ]")


class JapaneseTokenizer(Tokenizer):
    """Splits running text into words, and joins them without spaces.

    A space returns only between two words where Latin letters meet, as in New York.
    """

    @abstractmethod
    def pieces(self, line: str) -> list[str]:
        """Split a line; white space may be separate pieces, parts of others, or dropped."""

    def tokenize(self, line: str) -> list[str]:
        """Split a line into words; ASCII white space always separates them and is dropped."""
        return WORD.findall(" ".join(self.pieces(line)))

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join without spaces, except where Latin letters touch."""
        return join_words(tokens)

    @classmethod
    def restorer(cls, settings: Mapping[str, Any]) -> Callable[[str], str]:
        """Return a function that joins words; it needs no dictionary or model."""
        return lambda line: join_words(WORD.findall(line))


def join_words(words: Iterable[str]) -> str:
    """Join words without spaces, except where Latin letters touch."""
    words = [word for word in words if word]
    text = words[:1]
    for left, right in pairwise(words):
        if _LATIN.match(left[-1]) and _LATIN.match(right):
            text.append(" ")
        text.append(right)
    return "".join(text)


def original_pieces(pieces: Iterable[str], line: str) -> list[str]:
    """Return the pieces of a line at the places of the pieces of a text of equal length.

    Args:
        pieces: In order; together the whole text, possibly without its white space.
        line: The original of the text, character by character, with the same white space.
    """
    found, start = [], 0
    for piece in pieces:
        while piece[0] not in ASCII_SPACE and line[start] in ASCII_SPACE:
            start += 1
        found.append(line[start : start + len(piece)])
        start += len(piece)
    return found
