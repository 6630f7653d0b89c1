"""Raw lines to tokens and back: none, moses, char, mecab.

A tokenizer is one small class; it joins by its line in ``TOKENIZERS``. Whatever it does, a token is
never empty and holds no space and no newline, and a line of ASCII white space alone has no tokens.
"""

from __future__ import annotations

import importlib.metadata
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from nmtflex.config import nearest
from nmtflex.errors import DataError

ASCII_SPACE = " \t\n\r\v\f"
WORD = re.compile(f"[^{ASCII_SPACE}]+")


class Tokenizer(ABC):
    """What every tokenizer offers."""

    name: ClassVar[str]

    @abstractmethod
    def tokenize(self, line: str) -> list[str]:
        """Split a raw line into tokens."""

    @abstractmethod
    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join tokens to a raw line."""

    def surface(self, token: str) -> tuple[str, Sequence[int]]:
        """Return a token's raw characters, and for each of its own which of those it stands for."""
        return token, range(len(token))

    def describe(self) -> dict[str, str]:
        """Return what ``build_tokenizer`` makes the same tokenizer of; versions are information."""
        return {"name": self.name}


class NoneTokenizer(Tokenizer):
    """Tokens are parted by ASCII white space already; any other white space belongs to its word."""

    name = "none"

    def tokenize(self, line: str) -> list[str]:
        """Split at ASCII white space alone."""
        return WORD.findall(line)

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join by single spaces."""
        return " ".join(tokens)


class MosesTokenizer(Tokenizer):
    """The Moses script's tokens, escaped as there (``&apos;``), by sacremoses.

    sacremoses follows the script as it was until 2018; since then a period that ends the line is
    always split off.

    Args:
        language: Two-letter code for the abbreviations and apostrophes; "de-AT" counts as "de".
    """

    name = "moses"
    _ENTITY = re.compile("&(?:amp|#124|lt|gt|apos|quot|#91|#93);")

    def __init__(self, language: str) -> None:
        import sacremoses

        self.language = language
        short = re.split("[-_]", language)[0].lower()
        self._split = sacremoses.MosesTokenizer(short).tokenize
        self._join = sacremoses.MosesDetokenizer(short)

    def tokenize(self, line: str) -> list[str]:
        """Split as the current tokenizer.perl does."""
        tokens: list[str] = self._split(line, escape=True)
        if tokens and len(tokens[-1]) > 1 and tokens[-1][-1] == "." and tokens[-1][-2] != ".":
            tokens[-1:] = [tokens[-1][:-1], "."]
        return tokens

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join and unescape as detokenizer.perl does."""
        return self._join.detokenize(tokens)

    def surface(self, token: str) -> tuple[str, Sequence[int]]:
        """Take each entity for the one character it stands for."""
        if "&" not in token:
            return token, range(len(token))
        raw, owners, start = "", [], 0
        while start < len(token):
            entity = self._ENTITY.match(token, start)
            length = len(entity[0]) if entity else 1
            owners += [len(raw)] * length
            raw += self._join.unescape_xml(entity[0]) if entity else token[start]
            start += length
        return raw, owners

    def describe(self) -> dict[str, str]:
        """Return name, language and the version of sacremoses."""
        version = importlib.metadata.version("sacremoses")
        return {"name": self.name, "language": self.language, "version": f"sacremoses {version}"}


class CharTokenizer(Tokenizer):
    r"""Every character is a token, exactly reversible.

    A space becomes ``▁``; a ``▁`` of the text becomes the two-character token ``\▁``, which no
    other text can become. The carriage return of a DOS line end is dropped.
    """

    name = "char"
    _TOKEN: ClassVar[dict[str, str]] = {" ": "▁", "▁": "\\▁"}
    _CHARACTER: ClassVar[dict[str, str]] = {token: char for char, token in _TOKEN.items()}

    def tokenize(self, line: str) -> list[str]:
        """Split into characters."""
        if not line.strip(ASCII_SPACE):
            return []
        token = self._TOKEN
        return [token.get(character, character) for character in line.rstrip("\r\n")]

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join the characters."""
        return "".join([self._CHARACTER.get(token, token) for token in tokens])

    def surface(self, token: str) -> tuple[str, Sequence[int]]:
        """Show spaces as they were."""
        raw = self._CHARACTER.get(token, token)
        return raw, range(len(raw)) if len(raw) == len(token) else [0] * len(token)


class MecabTokenizer(Tokenizer):
    """Japanese words by MeCab.

    Args:
        dictionary: "ipadic" or "unidic-lite", a Python package that carries the dictionary.

    Raises:
        DataError: mecab-python3 or the dictionary is not installed.
    """

    name = "mecab"
    _LATIN = "A-Za-zÀ-ÖØ-öø-ɏ"
    _LATIN_GAP = re.compile(f"(?<=[{_LATIN}])\0(?=[{_LATIN}])")

    def __init__(self, dictionary: str = "ipadic") -> None:
        self.dictionary = dictionary
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
        # The empty rc file keeps a system's own MeCab settings out.
        self._tagger = MeCab.Tagger(f'-Owakati -r /dev/null -d "{package.DICDIR}"')

    def tokenize(self, line: str) -> list[str]:
        """Split into the dictionary's words."""
        return WORD.findall(self._tagger.parse(line)) if line.strip(ASCII_SPACE) else []

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join without spaces, except between two Latin words."""
        return self._LATIN_GAP.sub(" ", "\0".join(tokens)).replace("\0", "")

    def describe(self) -> dict[str, str]:
        """Return name, dictionary and the dictionary's version."""
        version = importlib.metadata.version(self.dictionary)
        return {
            "name": self.name,
            "dictionary": self.dictionary,
            "version": f"{self.dictionary} {version}",
        }


TOKENIZERS: dict[str, type[Tokenizer]] = {
    tokenizer.name: tokenizer
    for tokenizer in (NoneTokenizer, MosesTokenizer, CharTokenizer, MecabTokenizer)
}


def build_tokenizer(description: Mapping[str, Any]) -> Tokenizer:
    """Make a tokenizer of what ``describe`` returned: its class takes the rest as arguments.

    Raises:
        DataError: No tokenizer has that name, or its package is missing.
    """
    name = description.get("name")
    if name not in TOKENIZERS:
        raise DataError(f"unknown tokenizer {name!r}{nearest(str(name), TOKENIZERS)}")
    settings = {key: value for key, value in description.items() if key not in ("name", "version")}
    return TOKENIZERS[name](**settings)
