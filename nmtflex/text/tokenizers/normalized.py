"""A tokenizer that normalises its text first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nmtflex.text.normalize import build_normalizer
from nmtflex.text.tokenizers.base import Tokenizer


class NormalizedTokenizer(Tokenizer):
    """Normalises a line and leaves the rest to another tokenizer.

    Detokenizing does not undo the normalisation.

    Args:
        tokenizer: Splits the normalised line.
        normalize: Name of the normalisation.

    Raises:
        DataError: No normalisation has that name.
    """

    def __init__(self, tokenizer: Tokenizer, normalize: str) -> None:
        self.name = tokenizer.name
        self.model = tokenizer.model
        self._inner = tokenizer
        self._normalizer = build_normalizer(normalize)

    def tokenize(self, line: str) -> list[str]:
        """Normalise and split."""
        return self._inner.tokenize(self._normalizer(line))

    def text(self, line: str) -> str:
        """Normalise, and return the tokens as one line."""
        return self._inner.text(self._normalizer(line))

    def words(self, line: str) -> list[str]:
        """Normalise and split; a line that becomes only ASCII white space is empty."""
        return self._inner.words(self._normalizer(line))

    def detokenize(self, tokens: Sequence[str]) -> str:
        """Join tokens to a line."""
        return self._inner.detokenize(tokens)

    def surface(self, token: str) -> tuple[str, Sequence[int]]:
        """Return a token's characters in the normalised line."""
        return self._inner.surface(token)

    def align(self, line: str) -> tuple[str, Sequence[tuple[int, int]] | None]:
        """Return the normalised line, and the raw place of each of its characters."""
        return self._normalizer.align(line)

    def word_numbers(self, tokens: Sequence[str]) -> list[int]:
        """Return the number of each token's word."""
        return self._inner.word_numbers(tokens)

    def describe(self) -> dict[str, Any]:
        """Return the other tokenizer's description, with the normalisation."""
        return {**self._inner.describe(), "normalize": self._normalizer.name}

    def save_model(self, path: Path) -> None:
        """Write the other tokenizer's model file, if it needs one."""
        self._inner.save_model(path)
