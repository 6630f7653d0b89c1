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
from nmtflex.corpus.inputs import CHUNK, Corpus, Lines, read_chunks, read_numbered
from nmtflex.corpus.links import read_linked
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
    links: str  # a line of a file of links, if there are files
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

    def again(self, stores: Sequence[TokenStore], links: Sequence[Path] = ()) -> Iterator[Pair]:
        """Yield the kept pairs, reading the corpora again.

        Args:
            stores: The kept pairs as tokens, one store a side.
            links: A file of links for each corpus, or none at all.
        """
        sizes = zip(*map(_sizes, stores), strict=True)
        chunks = self._linked(links) if links else self._unlinked()
        broken = True
        for chunk, first, kept in zip(chunks, self._first, self._kept, strict=True):
            for source, target, line, new, keep in zip(*chunk, first, kept, strict=True):
                broken |= bool(new or not keep)
                if keep:
                    yield Pair(broken, (source, target), line, next(sizes))
                    broken = False

    def _linked(self, links: Sequence[Path]) -> Iterator[tuple[list[str], list[str], list[str]]]:
        for chunk in read_linked(self._corpora, links, self._most):
            yield chunk.source, chunk.target, chunk.links

    def _unlinked(self) -> Iterator[tuple[list[str], list[str], list[str]]]:
        for source, target in read_chunks(self._corpora, self._most):
            yield source, target, [""] * len(source)


def _sizes(store: TokenStore) -> Iterator[int]:
    return chain.from_iterable(map(np.ndarray.tolist, store.blocks_of_lengths()))


class Concatenation:
    """Joins kept pairs to samples of 2 to N sentences, and counts them.

    Args:
        config: How many, in which order, and how long.
        pipeline: Of the prepared folder.
        lines: The kept pairs.
    """

    def __init__(self, config: ConcatConfig, pipeline: TextPipeline, lines: TrainingLines) -> None:
        self._config = config
        self._lines = lines
        self._sides = pipeline.source, pipeline.target
        self._random = Random(config.concat_seed)
        self._samples = self._sentences = self._shortened = 0

    def join(self, stores: Sequence[TokenStore]) -> Iterator[Lines]:
        """Yield the raw lines of the samples, in chunks; see ``samples``."""
        for chunk in self.samples(stores):
            source, target = (
                [join_lines(side, [pair.lines[number] for pair in group]) for group in chunk]
                for number, side in enumerate(self._sides)
            )
            yield source, target

    def samples(
        self, stores: Sequence[TokenStore], links: Sequence[Path] = ()
    ) -> Iterator[list[list[Pair]]]:
        """Yield the pairs of each sample, in chunks of samples; see ``TrainingLines.again``."""
        groups = self._groups(self._lines.again(stores, links))
        while chunk := list(islice(groups, CHUNK)):
            yield chunk

    def _groups(self, pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
        if self._config.concat_order == "random":
            pairs = self._shuffled(pairs)
        group: list[Pair] = []
        wanted = 0
        for pair in pairs:
            if group and (pair.first or len(group) == wanted or not self._fits([*group, pair])):
                self._shortened += not pair.first and 1 < len(group) < wanted
                yield from self._counted(group)
                group = []
            if not group:
                wanted = self._random.randint(2, self._config.concat)
            group.append(pair)
        yield from self._counted(group)

    def describe(self) -> dict[str, int]:
        """Return the manifest entry."""
        return {
            "samples": self._samples,
            "sentences": self._sentences,
            "shortened": self._shortened,
        }

    def _shuffled(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        pairs = iter(pairs)
        while some := list(islice(pairs, SHUFFLED)):
            self._random.shuffle(some)
            yield from (pair._replace(first=False) for pair in some)

    def _fits(self, group: Sequence[Pair]) -> bool:
        most = self._config.concat_length
        totals = [sum(sizes) for sizes in zip(*(pair.sizes for pair in group), strict=True)]
        return not most or max(totals) <= most

    def _counted(self, group: list[Pair]) -> Iterator[list[Pair]]:
        """Yield a group and count it, unless it is a single pair."""
        if len(group) < 2:
            return
        self._samples += 1
        self._sentences += len(group)
        yield group


def join_lines(side: SidePipeline, lines: Sequence[str]) -> str:
    """Join sentences to a line, with the white space that is usual between them.

    A sentence without a full stop, such as a heading, is followed by a space in every language.
    """
    joined: list[str] = []
    for line in map(str.strip, lines[:-1]):
        ends = unicodedata.category(line[-1]).startswith("P") if line else False
        joined += [line, side.usual_space(line) if ends else " "]
    return "".join([*joined, lines[-1].strip()])
