"""The interface of tokenizers, and what holds for their tokens."""

from __future__ import annotations

import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

ASCII_SPACE = " \t\n\r\v\f"
WORD = re.compile(f"[^{ASCII_SPACE}]+")


class Tokenizer(ABC):
    """Splits raw lines into tokens, and joins them again.

    A token is never empty and contains no space or line feed. A line contains no line feed; the
    carriage return of a DOS line end belongs to no token.
    """

    name: str
    needs_model: ClassVar[bool] = False  # whether it needs a file, which a run must carry
    model: Path | None = None  # that file

    @abstractmethod
    def tokenize(self, line: str) -> list[str]:
        """Split a raw line into tokens."""

    @abstractmethod
    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join tokens to a raw line."""

    def words(self, line: str) -> list[str]:
        """Split a raw line for training or translation.

        A line of only ASCII white space is empty, even if white space makes tokens.
        """
        return self.tokenize(line) if line.strip(ASCII_SPACE) else []

    def text(self, line: str) -> str:
        """Return a raw line's tokens as one line, separated by spaces."""
        return " ".join(self.tokenize(line))

    def surface(self, token: str) -> tuple[str, Sequence[int]]:
        """Return a token's raw characters, and the index of the raw one for each of its own."""
        return token, range(len(token))

    def align(self, line: str) -> tuple[str, Sequence[tuple[int, int]] | None]:
        """Return the text that is split into tokens, and where each of its characters comes from.

        Places are [start, end) in the raw line; None if the text is the raw line itself.
        """
        return line, None

    def word_numbers(self, tokens: Sequence[str]) -> list[int]:
        """Return for each token the number of its word as alignments count, from 0; -1 for none.

        A token is a word. Subword models may join pieces to an empty one, which no line shows.
        """
        numbers = itertools.count()
        return [next(numbers) if token else -1 for token in tokens]

    def describe(self) -> dict[str, Any]:
        """Return what ``build_tokenizer`` needs for the same tokenizer; versions are only shown."""
        return {"name": self.name}

    def signature(self) -> str:
        """Name the tokenizer, its version and its model, for the signatures of scores."""
        about = self.describe()
        words = [about["name"], *str(about.get("version", "")).split()]
        parts = [f"segmenter:{'-'.join(words)}"]
        if "sha256" in about:
            parts.append(f"model:{about['sha256'][:12]}")
        if "normalize" in about:
            parts.append(f"normalize:{about['normalize']}")
        return "|".join(parts)

    def save_model(self, path: Path) -> None:  # noqa: B027
        """Write the model file, if the tokenizer needs one."""

    @classmethod
    def restorer(cls, settings: Mapping[str, Any]) -> Callable[[str], str]:
        """Return a function from a line of tokens to a raw line, as ``build_restorer`` does."""
        detokenize = cls(**settings).detokenize
        return lambda line: detokenize(WORD.findall(line))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the description: another process opens the model itself."""
        from nmtflex.text.tokenizers import build_tokenizer

        return build_tokenizer, (self.describe(), self.model)
