"""The raw text of each split, in any format, as chunks of pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from nmtflex.config import PreprocessConfig
from nmtflex.corpus.aspec import TEXT_FIELDS, TRAIN_FIELDS, find_aspec, read_aspec
from nmtflex.corpus.readers import find_text, read_pairs
from nmtflex.errors import DataError

CHUNK = 1000  # pairs

Lines = tuple[list[str], list[str]]  # source and target, line by line


class Corpus:
    """One corpus of a split.

    Args:
        files: The files it is read from.
        pairs: Opens the files and yields their pairs.
    """

    def __init__(
        self, files: tuple[Path, ...], pairs: Callable[[], Iterator[tuple[str, str]]]
    ) -> None:
        self.files = files
        self._pairs = pairs
        self.read = 0  # pairs

    def chunks(self, most: int | None = None) -> Iterator[Lines]:
        """Yield at most ``most`` of its pairs, and count them.

        Raises:
            DataError: The files are malformed or empty.
        """
        self.read = 0
        pairs = islice(self._pairs(), most)
        while chunk := list(islice(pairs, CHUNK)):
            self.read += len(chunk)
            yield [line for line, _ in chunk], [line for _, line in chunk]
        if not self.read:
            names = " and ".join(map(str, self.files))
            raise DataError(f"{names}: empty; a corpus needs at least one line")


def read_chunks(corpora: Sequence[Corpus], most: int | None = None) -> Iterator[Lines]:
    """Yield the pairs of several corpora, one after the other; see ``read_numbered``."""
    return (chunk for _, chunk in read_numbered(corpora, most))


def read_numbered(
    corpora: Sequence[Corpus], most: int | None = None
) -> Iterator[tuple[int, Lines]]:
    """Yield the pairs of several corpora in chunks, each with the number of its corpus.

    Args:
        corpora: All corpora of one split.
        most: Maximum pairs of all corpora together; the rest is not read. None: all.
    """
    left = most
    for number, corpus in enumerate(corpora):
        if left == 0:
            return
        for chunk in corpus.chunks(left):
            yield number, chunk
        if left is not None:
            left -= corpus.read


def find_corpora(config: PreprocessConfig) -> dict[str, list[Corpus]]:
    """Return the corpora of each split; their files exist, but are not read yet.

    Raises:
        DataError: A file is missing, or an ASPEC file begins with a line of another layout.
    """
    given = {
        "train": config.train,
        "valid": [config.valid] if config.valid else [],
        "test": [config.test] if config.test else [],
    }
    return {split: [_find(config, split, path) for path in paths] for split, paths in given.items()}


def _find(config: PreprocessConfig, split: str, path: Path) -> Corpus:
    languages = config.source_lang, config.target_lang
    if config.format == "aspec":
        file = find_aspec(path)
        fields = TRAIN_FIELDS if split == "train" else TEXT_FIELDS
        pairs = partial(read_aspec, file, languages, fields)
        next(pairs(), None)  # a file given to the wrong option fails now, not after hours
        return Corpus((file,), pairs)
    source, target = (find_text(path, language) for language in languages)
    return Corpus((source, target), partial(read_pairs, source, target))
