"""Where one subword ends a word and another begins one."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray

from nmtflex.text.pipeline import SidePipeline
from nmtflex.text.subwords.bpe import MARKER
from nmtflex.text.subwords.sentencepiece import SPACE
from nmtflex.text.tokenizers.char import UNSPACED
from nmtflex.text.vocabulary import BOS_ID, EOS_ID, UNK_ID

Array = NDArray[Any]

_LETTER = regex.compile(r"[\p{L}\p{M}\p{N}]")


@lru_cache(1 << 12)
def joins(character: str) -> bool:
    """Whether a character makes one word with a neighbour of its kind.

    Letters, marks and digits do, but for those of scripts that put no space between words.
    """
    return bool(_LETTER.match(character)) and not UNSPACED.match(character)


class Edges:
    """Tells whether there is an edge of a word between two tokens of a side.

    There is one where the tokenizer or the subword model separates words, and where one of the two
    characters that meet is no letter or digit, or is of a script without spaces.

    Args:
        side: The side.
    """

    def __init__(self, side: SidePipeline) -> None:
        tokens, subwords = side.vocabulary.tokens, side.subwords
        whole = subwords is None and side.tokenizer.name != "char"
        self._texts = texts = [token.removesuffix(MARKER).removeprefix(SPACE) for token in tokens]
        self._opens = np.array([whole or bool(subwords and subwords.opens(one)) for one in tokens])
        self._closes = np.array([
            whole or bool(subwords and subwords.closes(one)) for one in tokens
        ])
        self._closes[BOS_ID] = self._opens[EOS_ID] = True
        self._first = np.array([joins(text[:1]) for text in texts])
        self._last = np.array([joins(text[-1:]) for text in texts])
        self._first[UNK_ID] = self._last[UNK_ID] = True  # it may be a letter

    def between(self, left: Array, right: Array) -> Array:
        """Return for ids that follow each other, of shapes that fit, whether words meet there."""
        apart = self._closes[left] | self._opens[right]
        return apart | ~(self._last[left] & self._first[right])

    def text(self, number: int) -> str:
        """Return the text of an id, without the marks of subwords."""
        return self._texts[number]
