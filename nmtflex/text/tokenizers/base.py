"""What every tokenizer offers, and what it promises of its tokens."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

ASCII_SPACE = " \t\n\r\v\f"
WORD = re.compile(f"[^{ASCII_SPACE}]+")


class Tokenizer(ABC):
    """A way from a raw line to tokens and back.

    A token is never empty and holds no space and no line feed. A line holds no line feed; the
    carriage return of a DOS line end belongs to no token.
    """

    name: str
    needs_model: ClassVar[bool] = False  # whether it reads a file that a run has to carry with it
    model: Path | None = None  # that file

    @abstractmethod
    def tokenize(self, line: str) -> list[str]:
        """Split a raw line into tokens."""

    @abstractmethod
    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join tokens to a raw line."""

    def words(self, line: str) -> list[str]:
        """Split a raw line that is to be trained on or translated.

        One of ASCII white space alone is an empty one, even where white space has tokens.
        """
        return self.tokenize(line) if line.strip(ASCII_SPACE) else []

    def text(self, line: str) -> str:
        """Return a raw line's tokens as one line, parted by spaces."""
        return " ".join(self.tokenize(line))

    def surface(self, token: str) -> tuple[str, Sequence[int]]:
        """Return a token's raw characters, and for each of its own which of those it stands for."""
        return token, range(len(token))

    def align(self, line: str) -> tuple[str, Sequence[tuple[int, int]] | None]:
        """Return the text that is cut into tokens, and where each of its characters comes from.

        Places are [start, end) in the raw line; None where the text is the raw line itself.
        """
        return line, None

    def describe(self) -> dict[str, Any]:
        """Return what ``build_tokenizer`` makes the same tokenizer of; versions are information."""
        return {"name": self.name}

    def signature(self) -> str:
        """Name the tokenizer with its version and its model, as scores do."""
        about = self.describe()
        words = [about["name"], *str(about.get("version", "")).split()]
        parts = [f"segmenter:{'-'.join(words)}"]
        if "sha256" in about:
            parts.append(f"model:{about['sha256'][:12]}")
        if "normalize" in about:
            parts.append(f"normalize:{about['normalize']}")
        return "|".join(parts)

    def save_model(self, path: Path) -> None:  # noqa: B027
        """Copy the file that the tokenizer needs, if it needs one."""

    @classmethod
    def restorer(cls, settings: Mapping[str, Any]) -> Callable[[str], str]:
        """Return what makes a raw line of one of tokens parted by spaces, as ``build_restorer``."""
        detokenize = cls(**settings).detokenize
        return lambda line: detokenize(WORD.findall(line))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the description: another process opens models for itself."""
        from nmtflex.text.tokenizers import build_tokenizer

        return build_tokenizer, (self.describe(), self.model)
