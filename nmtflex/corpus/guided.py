"""Links between the words of training pairs, spread to subwords, in a prepared folder.

A pass of its own over the raw text, once it is encoded: it splits and filters each pair again, and
writes the links of the pairs that were kept. ``SPLIT.links`` is a store like those of tokens; a
pair's numbers are source place, target place, source place, .. of its subwords.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmtflex.corpus.filters import Filter
from nmtflex.corpus.inputs import Corpus
from nmtflex.corpus.links import check_inside, parse_links, read_links
from nmtflex.corpus.readers import read_lines
from nmtflex.corpus.store import StoreWriter
from nmtflex.errors import DataError
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.visible import counted


class LinkedLines(NamedTuple):
    """Pairs of raw lines with the lines of a file of links."""

    source: list[str]
    target: list[str]
    links: list[str]
    path: Path  # of the links
    first: int  # number of the first line in it, from 1


class SpreadLinks(NamedTuple):
    """The links of a chunk's kept pairs: all numbers, and how many each pair has."""

    numbers: npt.NDArray[np.uint32]
    lengths: list[int]


def read_linked(
    corpora: Sequence[Corpus], files: Sequence[Path], most: int | None = None
) -> Iterator[LinkedLines]:
    """Yield the pairs of corpora with the links of a file for each.

    Args:
        corpora: All corpora of one split.
        files: As many.
        most: Maximum pairs of all corpora together; the rest is not read. None: all.

    Raises:
        DataError: A file has another number of lines than its corpus, or cannot be read.
    """
    left = most
    for corpus, path in zip(corpora, files, strict=True):
        if left == 0:
            return
        lines = read_lines(path)
        first = 1
        chunks = corpus.chunks(left)
        for source, target in chunks:
            links = [line for _, line in zip(source, lines, strict=False)]
            if len(links) < len(source):
                for _ in chunks:  # so that the corpus is counted
                    pass
                raise _unequal(path, first - 1 + len(links), corpus)
            yield LinkedLines(source, target, links, path, first)
            first += len(source)
        if left is not None:
            left -= corpus.read
        if left != 0 and (more := sum(1 for _ in lines)):
            raise _unequal(path, corpus.read + more, corpus)


def write_links(
    chunks: Iterable[SpreadLinks],
    joined: int,
    base: Path,
    dtype: str,
    progress: Callable[[int], None],
) -> int:
    """Write the links of a split; return how many there are.

    Args:
        chunks: Those of all pairs, in order.
        joined: Samples of several sentences after them, which have no links.
        base: Path of the store.
        dtype: numpy type of the places.
        progress: Called with the pairs done.
    """
    pairs = links = 0
    with StoreWriter(base, dtype) as writer:
        for chunk in chunks:
            writer.append(chunk.numbers, chunk.lengths)
            pairs += len(chunk.lengths)
            links += len(chunk.numbers) // 2
            progress(pairs)
        writer.append([], np.zeros(joined, int))
    return links


def check_files(files: Iterable[Path]) -> None:
    """Check first that files have nothing but links, since they are used last.

    Raises:
        DataError: One has not, or cannot be read.
    """
    for path in files:
        for _ in read_links(path):
            pass


def _unequal(path: Path, lines: int, corpus: Corpus) -> DataError:
    names = " and ".join(map(str, corpus.files))
    return DataError(
        f"{path} has {counted(lines, 'line')}, but {names}: {counted(corpus.read, 'pair')}; line i "
        f"must have the links of pair i, and be empty if there are none"
    )


class Spread:
    """Spreads links between words to their subwords, with a finished pipeline.

    Every subword of a word is linked to every subword of the words it is linked to.

    Args:
        folder: The saved pipeline.
        rules: Which pairs are kept; None keeps all.
    """

    def __init__(self, folder: Path, rules: Filter | None) -> None:
        self._pipeline = TextPipeline.load(folder)
        self._rules = rules

    def __call__(self, lines: LinkedLines) -> SpreadLinks:
        """Split, filter and link a chunk.

        Raises:
            DataError: A line is malformed, or links a word beyond its sentence.
        """
        numbers: list[int] = []
        lengths: list[int] = []
        sides = self._pipeline.source, self._pipeline.target
        for number, (*pair, line) in enumerate(zip(*lines[:3], strict=True), lines.first):
            where = f"{lines.path}:{number}"
            links = parse_links(line, where).possible
            words = [side.words(text) for side, text in zip(sides, pair, strict=True)]
            pieces = [side.split_words(own) for side, own in zip(sides, words, strict=True)]
            if self._dropped(words, pieces):
                continue
            source, target = map(_places, sides, pieces)
            check_inside(links, (len(source), len(target)), where)
            spread = [both for one, other in links for both in product(source[one], target[other])]
            numbers += [place for both in sorted(spread) for place in both]
            lengths.append(2 * len(spread))
        return SpreadLinks(np.array(numbers, np.uint32), lengths)

    def _dropped(self, words: list[list[str]], pieces: list[list[str]]) -> bool:
        """Whether a pair is not among those that were encoded."""
        if self._rules is None:
            return False
        return bool(self._rules.reason(*words)) or not self._rules.fits(*map(len, pieces))


def _places(side: SidePipeline, pieces: list[str]) -> dict[int, list[int]]:
    """Return the places of each word's subwords, by the number of the word."""
    found = defaultdict[int, list[int]](list)
    for place, number in enumerate(side.word_numbers(pieces)):
        if number >= 0:
            found[number].append(place)
    return found
