"""The training words of one side: counted, cut into subwords, and turned into stores of ids.

The first pass numbers the distinct words in order of appearance and writes the numbers to a
temporary store. Later steps run once a distinct word and, for the running text, in numpy.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, KeysView
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nmtflex.corpus.store import StoreWriter
from nmtflex.text.subwords import Subwords
from nmtflex.text.vocabulary import Vocabulary

BLOCK = 1 << 15  # sentences converted at once

Integers = npt.NDArray[np.int64]


def numbering() -> defaultdict[str, int]:
    """Return a mapping that gives each new key the next number."""
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers


class WordStore:
    """The running words of one side as numbers in a temporary store, distinct words in memory."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._numbers = numbering()
        self._writer = StoreWriter(base, "<u4")
        self._dropped: Integers = np.empty(0, np.int64)  # numbers of sentences, ascending
        self.totals: Integers = np.empty(0, np.int64)  # how often each word was seen, once closed

    def append(self, text: str, lengths: list[int]) -> None:
        """Add sentences: all their words joined by spaces, and the number of words in each."""
        words = text.split(" ") if text else []
        ids = np.fromiter(map(self._numbers.__getitem__, words), np.uint32, len(words))
        self._writer.append(ids, lengths)

    def close(self) -> None:
        """End the first pass and count the words."""
        self._writer.close()
        self._count()

    def drop(self, sentences: Integers) -> None:
        """Leave out sentences from now on, and count the words of the others.

        Args:
            sentences: Their numbers, from 0, ascending.
        """
        self._dropped = sentences
        self._count()

    def _count(self) -> None:
        self.totals = np.zeros(len(self._numbers), np.int64)
        for ids, _ in self._blocks():
            self.totals += np.bincount(ids, minlength=len(self.totals))

    @property
    def words(self) -> KeysView[str]:
        """The distinct words, in the order of their numbers."""
        return self._numbers.keys()

    def counts_in(self, sentences: Integers) -> dict[str, int]:
        """Return the counts of the words in some sentences, without words that do not occur.

        Args:
            sentences: Their numbers, from 0, ascending; call before ``drop``.
        """
        totals = np.zeros(len(self._numbers), np.int64)
        for ids, lengths, chosen in self._chosen(sentences):
            totals += np.bincount(ids[np.repeat(chosen, lengths)], minlength=len(totals))
        return dict(compress(zip(self.words, totals.tolist(), strict=True), totals))

    def sentences(self, sentences: Integers) -> Iterator[str]:
        """Yield some sentences, their words joined by spaces; see ``counts_in``."""
        words = list(self.words)
        for ids, lengths, chosen in self._chosen(sentences):
            ends = np.cumsum(lengths)
            for place in np.flatnonzero(chosen).tolist():
                own = ids[ends[place] - lengths[place] : ends[place]]
                yield " ".join(map(words.__getitem__, own.tolist()))

    def _chosen(
        self, sentences: Integers
    ) -> Iterator[tuple[npt.NDArray[np.uint32], Integers, npt.NDArray[np.bool]]]:
        """Yield the blocks, and for each sentence whether its number is among these."""
        first = 0
        for ids, lengths in self._blocks():
            start, stop = np.searchsorted(sentences, (first, first + len(lengths)))
            chosen = np.zeros(len(lengths), bool)
            chosen[sentences[start:stop] - first] = True
            yield ids, lengths, chosen
            first += len(lengths)

    def longer_than(self, limit: int, pieces: Pieces) -> Integers:
        """Return the numbers of the sentences with more than ``limit`` subwords, for ``drop``."""
        found, first = [np.empty(0, np.int64)], 0
        for words, lengths in self._blocks():
            _, sizes = _measure(pieces.sizes[words], lengths)
            found.append(np.flatnonzero(sizes > limit) + first)
            first += len(lengths)
        return np.concatenate(found)

    def convert(self, pieces: Pieces, vocabulary: Vocabulary) -> Iterator[tuple[Any, Any]]:
        """Yield (ids, lengths) of blocks of encoded sentences."""
        flat = pieces.ids(vocabulary)
        for words, lengths in self._blocks():
            sizes = pieces.sizes[words]
            ends, totals = _measure(sizes, lengths)
            # Word w's ids are flat[starts[w] : starts[w] + sizes[w]]; list all these places.
            places = np.repeat(pieces.starts[words] - (ends - sizes), sizes)
            places += np.arange(len(places))
            yield flat[places], totals

    def _blocks(self) -> Iterator[tuple[npt.NDArray[np.uint32], Integers]]:
        """Yield (word numbers, words in each sentence) of blocks of kept sentences."""
        name, first = self._base.name, 0
        with (
            self._base.with_name(name + ".bin").open("rb") as tokens,
            self._base.with_name(name + ".offsets").open("rb") as offsets,
        ):
            last = np.fromfile(offsets, "<i8", 1)
            while len(ends := np.fromfile(offsets, "<i8", BLOCK)):
                lengths = np.diff(ends, prepend=last)
                words = np.fromfile(tokens, "<u4", int(ends[-1] - last[0]))
                if len(gone := self._dropped_of(first, len(lengths))):
                    kept = np.ones(len(lengths), bool)
                    kept[gone] = False
                    words, lengths = words[np.repeat(kept, lengths)], lengths[kept]
                yield words, lengths
                last, first = ends[-1:], first + len(ends)

    def _dropped_of(self, first: int, count: int) -> Integers:
        """Return which of ``count`` sentences from ``first`` on are dropped, counted from it."""
        start, stop = np.searchsorted(self._dropped, (first, first + count))
        return self._dropped[start:stop] - first


def _measure(sizes: Integers, lengths: Integers) -> tuple[Integers, Integers]:
    """Return the number of subwords up to each word's end, and in each sentence.

    Args:
        sizes: Subwords of each word.
        lengths: Words of each sentence.
    """
    ends = np.cumsum(sizes)
    bounds = np.concatenate([[0], ends])[np.concatenate([[0], np.cumsum(lengths)])]
    return ends, np.diff(bounds)


class Pieces:
    """The subwords of each distinct word.

    Args:
        words: The words of one side.
        subwords: Splits them; None leaves them whole.
        numbers: Numbers of the distinct subwords; two sides share them for joint vocabularies.
    """

    def __init__(
        self, words: WordStore, subwords: Subwords | None, numbers: defaultdict[str, int]
    ) -> None:
        self.numbers = numbers
        self.sizes: Integers = np.ones(len(words.words), np.int64)
        flat = array("i")
        number = numbers.__getitem__
        for place, word in enumerate(words.words):
            pieces = subwords.split(word) if subwords else (word,)
            flat.extend(map(number, pieces))
            self.sizes[place] = len(pieces)
        self._flat = np.asarray(flat)
        self.starts: Integers = np.cumsum(self.sizes) - self.sizes
        self._words = words

    def counts(self) -> Integers:
        """Return the count of each subword, by its number."""
        # Floats hold counts exactly up to 2^53.
        weights = np.repeat(self._words.totals, self.sizes)
        totals = np.bincount(self._flat, weights, len(self.numbers))
        return totals.astype(np.int64)

    def ids(self, vocabulary: Vocabulary) -> npt.NDArray[np.uint32]:
        """Return the vocabulary's ids of all words' subwords, concatenated."""
        return np.array(vocabulary.ids(self.numbers), np.uint32)[self._flat]
