"""Word alignments in files: Pharaoh's format, with sure and possible links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from nmtflex.corpus.inputs import Corpus
from nmtflex.corpus.readers import read_lines
from nmtflex.errors import DataError
from nmtflex.text.visible import counted, visible

LINK = re.compile(r"([0-9]{1,9})([-p?])([0-9]{1,9})")
SURE = "-"

Link = tuple[int, int]  # source word, target word, from 0


class LinkedLines(NamedTuple):
    """Pairs of raw lines with the lines of a file of links."""

    source: list[str]
    target: list[str]
    links: list[str]
    path: Path  # of the links
    first: int  # number of the first line in it, from 1


class Links(NamedTuple):
    """The links of a pair of sentences, each once and in order."""

    sure: list[Link]
    possible: list[Link]  # the sure ones among them


def read_links(path: Path, base: int = 0) -> Iterator[Links]:
    """Yield the links of each line of a file: ``0-2`` sure, ``0p2`` or ``0?2`` possible.

    Args:
        path: With a line for each pair of sentences.
        base: The number of the first word in the file.

    Raises:
        DataError: The file cannot be read, or a line has anything else.
    """
    for number, line in enumerate(read_lines(path), 1):
        yield parse_links(line, f"{path}:{number}", base)


def check_files(files: Iterable[Path]) -> None:
    """Check first that files have nothing but links, since they are used last.

    Raises:
        DataError: One has not, or cannot be read.
    """
    for path in files:
        for _ in read_links(path):
            pass


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


def parse_links(line: str, where: str, base: int = 0) -> Links:
    """Return the links of a line.

    Args:
        line: Of the file.
        where: Its file and number, for errors.
        base: As for ``read_links``.

    Raises:
        DataError: A part is no link, or numbers a word below ``base``.
    """
    sure, possible = set[Link](), set[Link]()
    for part in line.split():
        found = LINK.fullmatch(part)
        if found is None:
            raise DataError(
                f"{where}: {visible(part)!r} is not a link; write source word, hyphen and target "
                f"word, as in 0-2 (0p2 if it is only possible)"
            )
        link = int(found[1]) - base, int(found[3]) - base
        if min(link) < 0:
            raise DataError(f"{where}: {part} names a word 0, but words are counted from {base}")
        possible.add(link)
        if found[2] == SURE:
            sure.add(link)
    return Links(sorted(sure), sorted(possible))


def check_inside(links: Iterable[Link], sizes: tuple[int, int], where: str, base: int = 0) -> None:
    """Check that links are inside their sentences.

    Args:
        links: Of a pair.
        sizes: Source and target words.
        where: File and number of the line, for errors.
        base: As for ``read_links``.

    Raises:
        DataError: A word is beyond the last one.
    """
    for link in links:
        for place, size, side in zip(link, sizes, ("source", "target"), strict=True):
            if place >= size:
                shown = "-".join(str(one + base) for one in link)
                raise DataError(
                    f"{where}: link {shown} is beyond the {side}, which has {size} words; words "
                    f"are the tokens before subwords, counted from {base}"
                )


def _unequal(path: Path, lines: int, corpus: Corpus) -> DataError:
    names = " and ".join(map(str, corpus.files))
    return DataError(
        f"{path} has {counted(lines, 'line')}, but {names}: {counted(corpus.read, 'pair')}; line i "
        f"must have the links of pair i, and be empty if there are none"
    )
