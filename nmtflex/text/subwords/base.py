"""The interface of subword models: words to pieces and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar

Draw = Callable[[Random], list[str]]  # draws one of a word's segmentations


class Subwords(ABC):
    """Splits words into pieces, and joins pieces to words.

    Pieces contain no white space, and joining the pieces of words gives the words again.
    """

    title: ClassVar[str]  # in messages
    sampled_by: str | None = None  # the option of ``train`` for ``drawing``
    pieces: Sequence[str] | None = None  # all that exist; None if only the text tells

    @property
    def called(self) -> str:
        """The kind of model, in messages."""
        return self.title

    @abstractmethod
    def split(self, word: str) -> list[str]:
        """Split a word into pieces."""

    @abstractmethod
    def join(self, pieces: Iterable[str]) -> list[str]:
        """Join pieces to words; there is one for each of ``starts``."""

    @abstractmethod
    def bounds(self, word: str) -> list[tuple[int, int]]:
        """Return [start, end) in the word, in characters, for each piece of ``split``."""

    def opens(self, piece: str) -> bool:
        """Whether a piece can only be a word's first."""
        return False

    def closes(self, piece: str) -> bool:
        """Whether a piece can only be a word's last."""
        return False

    def starts(self, pieces: Sequence[str]) -> list[int]:
        """Return where each word begins among its pieces."""
        before = [True, *map(self.closes, pieces)]
        return [place for place, piece in enumerate(pieces) if before[place] or self.opens(piece)]

    def plain(self, line: str) -> str:
        """Return a raw line without marks of pieces, such as a reference for scores."""
        return line

    def drawing(self, word: str, alpha: float | None, dropout: float) -> Draw | None:
        """Return what draws segmentations of a word; None if these options do not apply.

        Args:
            word: As for ``split``.
            alpha: Of unigram models: the exponent of a segmentation's probability.
            dropout: Of merges: the probability that one is left out.
        """
        return None

    def __eq__(self, other: object) -> bool:
        """Whether it splits all words alike."""
        return type(self) is type(other) and self._key() == other._key()

    __hash__ = None  # type: ignore[assignment]

    @abstractmethod
    def _key(self) -> Any:
        """Return what decides how words are split."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return its part of the description of a side."""

    @abstractmethod
    def save(self, folder: Path, side: str) -> None:
        """Write its file, if it has one."""
