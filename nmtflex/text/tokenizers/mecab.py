"""Japanese words by MeCab."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import threading
from collections.abc import Iterator
from typing import Any

from nmtflex.config import nearest
from nmtflex.errors import DataError
from nmtflex.text.tokenizers.base import ASCII_SPACE, WORD
from nmtflex.text.tokenizers.japanese import JapaneseTokenizer, original_pieces

DICTIONARIES = ("ipadic", "unidic-lite")
LONGEST = 10_000  # characters at once: MeCab fails on a word of 65,536 bytes
_REFUSED = re.compile("[\0\ud800-\udfff]")  # ends the text for MeCab, or cannot be encoded
_STOP = re.compile(f"[{ASCII_SPACE}。！？]")


class MecabTokenizer(JapaneseTokenizer):
    """Japanese words by MeCab.

    Args:
        dictionary: "ipadic" or "unidic-lite", a Python package that carries the dictionary.

    Raises:
        DataError: The dictionary is unknown, or it or mecab-python3 is not installed.
    """

    name = "mecab"

    def __init__(self, dictionary: str = "ipadic") -> None:
        if dictionary not in DICTIONARIES:
            raise DataError(
                f"unknown MeCab dictionary {dictionary!r}; there is {' and '.join(DICTIONARIES)}"
                f"{nearest(dictionary, DICTIONARIES)}"
            )
        self.dictionary = dictionary
        self._alone = threading.Lock()  # a tagger keeps its text and its result
        try:
            import MeCab
        except ImportError as error:
            raise DataError(
                "the mecab tokenizer needs MeCab; run pip install mecab-python3"
            ) from error
        try:
            package = importlib.import_module(dictionary.replace("-", "_"))
        except ImportError as error:
            raise DataError(
                f"the mecab tokenizer needs a dictionary; run pip install {dictionary}"
            ) from error
        try:
            # The empty rc file keeps a system's own MeCab settings out.
            self._tagger = MeCab.Tagger(f'-Owakati -r /dev/null -d "{package.DICDIR}"')
        except RuntimeError as error:
            raise DataError(
                f"MeCab cannot open the dictionary in {package.DICDIR}; run "
                f"pip install --force-reinstall {dictionary}"
            ) from error

    def pieces(self, line: str) -> list[str]:
        """Split into the dictionary's words."""
        text = _REFUSED.sub("\ufffd", line)
        with self._alone:
            words = [
                word for part in _parts(text) for word in WORD.findall(self._tagger.parse(part))
            ]
        return words if text == line else original_pieces(words, line)

    def describe(self) -> dict[str, Any]:
        """Return name, dictionary and the dictionary's version."""
        version = importlib.metadata.version(self.dictionary)
        return {
            "name": self.name,
            "dictionary": self.dictionary,
            "version": f"{self.dictionary} {version}",
        }


def _parts(text: str) -> Iterator[str]:
    """Split a text too long for MeCab after white space or the end of a sentence, if any."""
    start = 0
    while len(text) - start > LONGEST:
        stops = [match.end() for match in _STOP.finditer(text, start, start + LONGEST)]
        stop = stops[-1] if stops else start + LONGEST
        yield text[start:stop]
        start = stop
    yield text[start:]
