"""Training samples of several sentences, joined from the kept training pairs.

A model that has seen only single sentences translates longer text badly. Joined samples of random
sentences help as joined neighbours do (Nguyen, Murray and Chiang 2021,
https://aclanthology.org/2021.iwslt-1.33).

Raw lines are joined, and encoded as a line of text is for translation. The corpus is read a second
time for this. In memory are two bytes for each pair read and, in random order, 100,000 pairs.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmtflex.config import ConcatConfig
from nmtflex.corpus.filters import Mask
from nmtflex.corpus.inputs import CHUNK, Corpus, Lines, read_numbered
from nmtflex.corpus.readers import read_lines
from nmtflex.corpus.store import TokenStore
from nmtflex.errors import DataError, OptionError
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.visible import counted

SHUFFLED = 100_000  # pairs


class Pair(NamedTuple):
    """A kept training pair."""

    first: bool  # whether it does not follow the pair before it
    lines: tuple[str, str]
    sizes: tuple[int, int]  # stored tokens


class TrainingLines:
    """The lines of the training corpora, which of them begin a document, and which are kept.

    Args:
        corpora: All of them, in order.
        most: Maximum pairs read; None for all.
        documents: A file of document names for each corpus, or none at all.

    Raises:
        OptionError: There is another number of files.
    """

    def __init__(
        self, corpora: Sequence[Corpus], most: int | None, documents: Sequence[Path]
    ) -> None:
        if documents and len(documents) != len(corpora):
            raise OptionError(
                f"--concat-documents is given for {len(documents)} of {len(corpora)} --train; give "
                f"one file for each"
            )
        self._corpora = corpora
        self._most = most
        self._documents = documents
        self._first: list[Mask] = []  # of each chunk: whether a document begins
        self._kept: list[Mask] = []

    def read(self) -> Iterator[Lines]:
        """Yield the lines in chunks, for the first time.

        Raises:
            DataError: A corpus is malformed, or a file of documents has too few or too many lines.
        """
        place, before = -1, ""
        names: Iterator[str] = iter(())
        for number, chunk in read_numbered(self._corpora, self._most):
            first = np.zeros(len(chunk[0]), bool)
            if number != place:
                self._check_end(place, names)
                place, names = number, self._names(number)
                first[0] = True
            if self._documents:
                found = list(islice(names, len(first)))
                if len(found) < len(first):
                    self._refuse(place)
                first |= [one != two for one, two in pairwise([before, *found])]
                before = found[-1]
            self._first.append(first)
            yield chunk
        self._check_end(place, names)

    def _names(self, place: int) -> Iterator[str]:
        return read_lines(self._documents[place]) if self._documents else iter(())

    def _check_end(self, place: int, names: Iterator[str]) -> None:
        whole = self._most is None or sum(corpus.read for corpus in self._corpora) < self._most
        if whole and next(names, None) is not None:
            self._refuse(place)

    def _refuse(self, place: int) -> None:
        path = self._documents[place]
        lines = sum(1 for _ in read_lines(path))
        raise DataError(
            f"{path}: {counted(lines, 'line')}, but {self._corpora[place].files[0]} has another "
            f"number; line i of it must name the document of line i"
        )

    def keep(self, kept: Mask) -> None:
        """Note which pairs of the next chunk are kept."""
        self._kept.append(kept)

    def drop(self, numbers: npt.NDArray[np.int64]) -> None:
        """Drop more pairs; ``numbers`` among those kept, ascending."""
        before = 0
        for kept in self._kept:
            own = np.flatnonzero(kept)
            start, stop = np.searchsorted(numbers, (before, before + len(own)))
            kept[own[numbers[start:stop] - before]] = False
            before += len(own)

    def again(self, stores: Sequence[TokenStore]) -> Iterator[Pair]:
        """Yield the kept pairs, reading the corpora again.

        Args:
            stores: The kept pairs as tokens, one store a side.
        """
        sizes = zip(*map(_sizes, stores), strict=True)
        chunks = read_numbered(self._corpora, self._most)
        broken = True
        for (_, chunk), first, kept in zip(chunks, self._first, self._kept, strict=True):
            for lines, new, keep in zip(zip(*chunk, strict=True), first, kept, strict=True):
                broken |= bool(new or not keep)
                if keep:
                    yield Pair(broken, lines, next(sizes))
                    broken = False


def _sizes(store: TokenStore) -> Iterator[int]:
    return chain.from_iterable(map(np.ndarray.tolist, store.blocks_of_lengths()))


class Concatenation:
    """Joins kept pairs to samples of 2 to N sentences, and counts them.

    Args:
        config: How many, in which order, and how long.
        pipeline: Of the prepared folder.
    """

    def __init__(self, config: ConcatConfig, pipeline: TextPipeline) -> None:
        self._config = config
        self._sides = pipeline.source, pipeline.target
        self._random = Random(config.concat_seed)
        self.samples = self.sentences = self.shortened = 0

    def join(self, pairs: Iterable[Pair]) -> Iterator[Lines]:
        """Yield the raw lines of the samples, in chunks."""
        if self._config.concat_order == "random":
            pairs = self._shuffled(pairs)
        samples = iter(self._samples(pairs))
        while chunk := list(islice(samples, CHUNK)):
            yield [source for source, _ in chunk], [target for _, target in chunk]

    def describe(self) -> dict[str, int]:
        """Return the manifest entry."""
        return {
            "samples": self.samples,
            "sentences": self.sentences,
            "shortened": self.shortened,
        }

    def _shuffled(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        pairs = iter(pairs)
        while some := list(islice(pairs, SHUFFLED)):
            self._random.shuffle(some)
            yield from (pair._replace(first=False) for pair in some)

    def _samples(self, pairs: Iterable[Pair]) -> Iterator[tuple[str, str]]:
        """Yield the two sides of each sample."""
        group: list[Pair] = []
        wanted = 0
        for pair in pairs:
            if group and (pair.first or len(group) == wanted or not self._fits([*group, pair])):
                self.shortened += not pair.first and 1 < len(group) < wanted
                yield from self._joined(group)
                group = []
            if not group:
                wanted = self._random.randint(2, self._config.concat)
            group.append(pair)
        yield from self._joined(group)

    def _fits(self, group: Sequence[Pair]) -> bool:
        most = self._config.concat_length
        totals = [sum(sizes) for sizes in zip(*(pair.sizes for pair in group), strict=True)]
        return not most or max(totals) <= most

    def _joined(self, group: Sequence[Pair]) -> Iterator[tuple[str, str]]:
        """Yield the sample of a group; none of a single pair."""
        if len(group) < 2:
            return
        self.samples += 1
        self.sentences += len(group)
        source, target = zip(*(pair.lines for pair in group), strict=True)
        yield join_lines(self._sides[0], source), join_lines(self._sides[1], target)


def join_lines(side: SidePipeline, lines: Sequence[str]) -> str:
    """Join sentences to a line, with the white space that is usual between them.

    A sentence without a full stop, such as a heading, is followed by a space in every language.
    """
    joined: list[str] = []
    for line in map(str.strip, lines[:-1]):
        ends = unicodedata.category(line[-1]).startswith("P") if line else False
        joined += [line, side.usual_space(line) if ends else " "]
    return "".join([*joined, lines[-1].strip()])
