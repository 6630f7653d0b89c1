"""Characters as tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import regex

from nmtflex.text.tokenizers.base import Tokenizer

UNSPACED = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
)  # characters of scripts that put no space between words


class CharTokenizer(Tokenizer):
    r"""Every character is a token, exactly reversible.

    A space becomes ``▁``; a ``▁`` of the text becomes the two-character token ``\▁``, which is
    unambiguous. Carriage returns at the end of a line are dropped.
    """

    name = "char"
    _TOKEN: ClassVar[dict[str, str]] = {" ": "▁", "▁": "\\▁"}
    _CHARACTER: ClassVar[dict[str, str]] = {token: char for char, token in _TOKEN.items()}

    def tokenize(self, line: str) -> list[str]:
        """Split into characters."""
        token = self._TOKEN
        return [token.get(character, character) for character in line.rstrip("\r")]

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join the characters."""
        return "".join([self._CHARACTER.get(token, token) for token in tokens])

    @classmethod
    def restorer(cls, settings: Mapping[str, Any]) -> Callable[[str], str]:
        """Return a function that splits tokens at spaces only: other white space is a token."""
        detokenize = cls(**settings).detokenize
        return lambda line: detokenize(line.rstrip("\r").split(" "))

    def surface(self, token: str) -> tuple[str, Sequence[int]]:
        """Return the raw character, such as a space."""
        raw = self._CHARACTER.get(token, token)
        return raw, range(len(raw)) if len(raw) == len(token) else [0] * len(token)

    def word_numbers(self, tokens: Sequence[str]) -> list[int]:
        """Return the number of each character's word; -1 for white space.

        Words stand between white space. In scripts without it, a character is a word.
        """
        found, number, inside = list[int](), -1, False
        for token in tokens:
            raw = self._CHARACTER.get(token, token)
            alone = UNSPACED.match(raw) is not None
            if raw.isspace():
                found.append(-1)
                inside = False
                continue
            number += alone or not inside
            found.append(number)
            inside = not alone
        return found
