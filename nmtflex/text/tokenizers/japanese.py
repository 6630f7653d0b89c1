"""What segmenters of Japanese have in common: text that has no spaces of its own."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from nmtflex.text.tokenizers.base import ASCII_SPACE, WORD, Tokenizer

_LATIN = re.compile("[A-Za-zÀ-ÖØ-öø-ɏＡ-Ｚａ-ｚ]")


class JapaneseTokenizer(Tokenizer):
    """Cuts running text into words, and joins them without spaces.

    A space comes back between two words only where Latin letters touch, as in New York.
    """

    @abstractmethod
    def pieces(self, line: str) -> list[str]:
        """Cut a line; white space may be pieces of its own, or parts of others, or left out."""

    def tokenize(self, line: str) -> list[str]:
        """Cut a line into words; ASCII white space always parts them and is left out."""
        return WORD.findall(" ".join(self.pieces(line)))

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join without spaces, except where Latin letters touch."""
        return join_words(tokens)

    @classmethod
    def restorer(cls, settings: Mapping[str, Any]) -> Callable[[str], str]:
        """Return what joins words, for which no dictionary and no model is needed."""
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
    """Return the pieces of the line that pieces of a text of equal length stand for.

    Args:
        pieces: In order; together the whole text, but for white space that they may lack.
        line: What the text was made of, character by character, white space unchanged.
    """
    found, start = [], 0
    for piece in pieces:
        while piece[0] not in ASCII_SPACE and line[start] in ASCII_SPACE:
            start += 1
        found.append(line[start : start + len(piece)])
        start += len(piece)
    return found
