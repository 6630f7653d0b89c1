"""Text that came in pieces: nothing is split, and output is joined."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from nmtflex.text.subwords.base import Subwords
from nmtflex.text.subwords.bpe import MARKER
from nmtflex.text.subwords.sentencepiece import BYTES, SPACE, word_of


class Segmented(Subwords):
    """Pieces of BPE, ``wor@@ d``, or of SentencePiece, ``▁wor d``, in the text itself.

    Args:
        marks: "bpe" or "sentencepiece".
    """

    title = "segmented text"

    def __init__(self, marks: str) -> None:
        self.marks = marks

    def split(self, word: str) -> list[str]:
        """Return the piece, since each piece counts as a word."""
        return [word]

    def bounds(self, word: str) -> list[tuple[int, int]]:
        """Return the whole piece."""
        return [(0, len(word))]

    def join(self, pieces: Iterable[str]) -> list[str]:
        """Join pieces to words, without the marks."""
        pieces = list(pieces)
        return [self._word(pieces[a:b]) for a, b in pairwise([*self.starts(pieces), len(pieces)])]

    def _word(self, pieces: list[str]) -> str:
        if self.marks == "bpe":
            return "".join(piece.removesuffix(MARKER) for piece in pieces)
        return word_of(pieces, BYTES)

    def opens(self, piece: str) -> bool:
        """Whether a piece begins with ``▁``."""
        return self.marks == "sentencepiece" and piece.startswith(SPACE)

    def closes(self, piece: str) -> bool:
        """Whether a piece of BPE has no ``@@``."""
        return self.marks == "bpe" and not piece.endswith(MARKER)

    def plain(self, line: str) -> str:
        """Join the pieces of a line; one without marks has no pieces to join."""
        mark = MARKER if self.marks == "bpe" else SPACE
        return " ".join(self.join(line.split())) if mark in line else line

    def _key(self) -> Any:
        return self.marks

    def describe(self) -> dict[str, Any]:
        """Return the marks."""
        return {"segmented": self.marks}

    def save(self, folder: Path, side: str) -> None:
        """Write nothing."""
