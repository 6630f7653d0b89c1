"""Token ids on disk, read on demand, so that a corpus may be larger than memory.

Each side of a split is two files: ``train.source.bin``, all ids concatenated (uint16 if the
vocabulary fits, else uint32), and ``train.source.offsets`` (int64): sentence i is
``bin[offsets[i]:offsets[i + 1]]``. Both are little-endian without a header.
"""

from __future__ import annotations

import hashlib
import json
import os
import weakref
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from nmtflex.config import FORMAT
from nmtflex.corpus.readers import read_lines
from nmtflex.errors import DataError
from nmtflex.files import check_plain, read_json
from nmtflex.text.pipeline import TextPipeline

Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")
SPLITS = ("train", "valid", "test")
ID_TYPES = ("<u2", "<u4")
MANIFEST = "manifest.json"
Lengths = npt.NDArray[np.int32]
LONGEST = (1 << 31) - 1  # maximum tokens of a sentence
BLOCK = 1 << 20  # sentences whose lengths are read at once


def id_type(size: int) -> str:
    """Return the numpy type that holds the ids of a vocabulary of this size."""
    return ID_TYPES[0] if size <= 1 << 16 else ID_TYPES[1]


class StoreWriter:
    """Appends sentences to a store; use as a context manager.

    Args:
        base: Path without ``.bin`` and ``.offsets``.
        dtype: numpy type of the ids.
    """

    def __init__(self, base: Path, dtype: str) -> None:
        self._dtype = dtype
        self._tokens = base.with_name(base.name + ".bin").open("wb")
        self._offsets = base.with_name(base.name + ".offsets").open("wb")
        self._end = 0
        self._offsets.write(np.zeros(1, "<i8").tobytes())

    def append(self, ids: npt.ArrayLike, lengths: npt.ArrayLike) -> None:
        """Append sentences.

        Args:
            ids: Their ids, concatenated.
            lengths: Number of ids in each sentence.
        """
        self._tokens.write(np.asarray(ids, self._dtype).tobytes())
        ends = self._end + np.cumsum(np.asarray(lengths, "<i8"))
        self._offsets.write(ends.astype("<i8").tobytes())
        self._end = int(ends[-1]) if len(ends) else self._end

    def flush(self) -> None:
        """Let others read what was appended."""
        self._tokens.flush()
        self._offsets.flush()

    def close(self) -> None:
        """Flush and close the files."""
        self._tokens.close()
        self._offsets.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


class TokenStore:
    """The sentences of one side of one split.

    Each is read from the files on demand: with a memory map, every page once touched would count as
    memory of this process, and in the end the whole corpus would.

    Args:
        base: Path without ``.bin`` and ``.offsets``.
        dtype: numpy type of the ids.
        size: Entries of the vocabulary; every id read must be below it.

    Raises:
        DataError: The files do not belong together. A sentence that ends before it starts, or an
            id outside the vocabulary, raises only when it is read.
    """

    def __init__(self, base: Path, dtype: str, size: int = 1 << 32) -> None:
        self._base = base
        self._size = size
        self._tokens = _Numbers(base.with_name(base.name + ".bin"), dtype)
        self._offsets = _Numbers(base.with_name(base.name + ".offsets"), "<i8")
        last = len(self._offsets) - 1
        ends = [int(self._offsets.read(place)[0]) for place in (0, last)] if last >= 0 else None
        if ends != [0, len(self._tokens)]:
            raise self._damaged("do not belong together")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, index: int) -> npt.NDArray[Any]:
        """Return a sentence's ids [length], without begin and end; read-only.

        Raises:
            DataError: The sentence is damaged.
        """
        if not -len(self) <= index < len(self):
            raise IndexError(f"sentence {index} of {len(self)}")
        index = int(index) % len(self)
        start, end = self._offsets.read(index, 2).tolist()
        if not 0 <= start <= end <= len(self._tokens):
            raise self._damaged(f"are damaged at sentence {index}")
        ids = self._tokens.read(start, end - start)
        if ids.max(initial=0) >= self._size:
            raise self._damaged(f"are damaged at sentence {index}")
        return ids

    @cached_property
    def lengths(self) -> npt.NDArray[np.int32]:
        """Number of ids in each sentence, [len(self)]; 4 bytes a sentence.

        Raises:
            DataError: A sentence ends before it starts.
        """
        lengths, first = np.empty(len(self), np.int32), 0
        for block in self.blocks_of_lengths():
            lengths[first : first + len(block)] = block
            first += len(block)
        return lengths

    def blocks_of_lengths(self) -> Iterator[npt.NDArray[np.int64]]:
        """Yield the number of ids in each sentence, many sentences at a time.

        Raises:
            DataError: A sentence ends before it starts.
        """
        for first in range(0, len(self), BLOCK):
            block = np.diff(self._offsets.read(first, min(BLOCK, len(self) - first) + 1))
            if block.min() < 0 or block.max() > LONGEST:
                bad = int(np.flatnonzero((block < 0) | (block > LONGEST))[0])
                raise self._damaged(f"are damaged at sentence {first + bad}")
            yield block

    def _damaged(self, what: str) -> DataError:
        return DataError(f"{self._base}.bin and .offsets {what}; prepare the folder again")


class LinkStore:
    """The links between the subwords of a split's pairs.

    Args:
        base: Path without ``.bin`` and ``.offsets``.
        dtype: numpy type of the places.
        sizes: The tokens of each source and of each target.

    Raises:
        DataError: The files do not belong together, or not to the pairs.
    """

    def __init__(self, base: Path, dtype: str, sizes: tuple[Lengths, Lengths]) -> None:
        self._base, self._sizes = base, sizes
        self._store = TokenStore(base, dtype)
        if len(self._store) != len(sizes[0]):
            raise self._damaged(f"has {len(self._store):,} pairs, not {len(sizes[0]):,}")

    def __getitem__(self, pair: int) -> npt.NDArray[np.int64]:
        """Return the links [n, 2] of a pair: source and target places.

        Raises:
            DataError: They are damaged.
        """
        numbers = self._store[pair].astype(np.int64)
        if len(numbers) % 2:
            raise self._damaged(f"is damaged at pair {pair}")
        links = numbers.reshape(-1, 2)
        if len(links) and (links.max(0) >= [sizes[pair] for sizes in self._sizes]).any():
            raise self._damaged(f"is damaged at pair {pair}")
        return links

    def _damaged(self, what: str) -> DataError:
        return DataError(f"{self._base}.bin {what}; prepare the folder again")


class _Numbers:
    """The integers of a file, which stays open as long as this object lives."""

    def __init__(self, path: Path, dtype: str) -> None:
        self._path = path
        self._dtype = np.dtype(dtype)
        try:
            self._file = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise DataError(f"{path}: {error.strerror}; prepare the folder again") from error
        weakref.finalize(self, os.close, self._file)
        size = os.fstat(self._file).st_size
        if size % self._dtype.itemsize:
            raise DataError(
                f"{path}: {size:,} bytes are not a multiple of {self._dtype.itemsize}; prepare the "
                f"folder again"
            )
        self._count = size // self._dtype.itemsize

    def __len__(self) -> int:
        return self._count

    def read(self, start: int, count: int = 1) -> npt.NDArray[Any]:
        """Return ``count`` numbers from ``start`` on, all inside the file.

        Raises:
            DataError: The file was truncated after it was opened.
        """
        width = self._dtype.itemsize
        data = os.pread(self._file, count * width, start * width)
        if len(data) < count * width:
            raise DataError(f"{self._path}: truncated while it was read; prepare the folder again")
        return np.frombuffer(data, self._dtype)


class PreparedCorpus:
    """A prepared folder with its manifest; made by ``open_prepared``."""

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.folder = folder
        self.manifest = manifest
        self._stores: dict[tuple[str, Side], TokenStore] = {}

    @cached_property
    def pipeline(self) -> TextPipeline:
        """Tokenizers, BPE and vocabularies of both sides."""
        return TextPipeline.load(self.folder / "pipeline")

    @property
    def splits(self) -> list[str]:
        """Names of its splits, of train, valid and test."""
        return list(self.manifest["splits"])

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 that changes with any file of the folder, but not with its location."""
        files = json.dumps(self.manifest["files"], sort_keys=True)
        return hashlib.sha256(files.encode()).hexdigest()

    def store(self, split: str, side: Side) -> TokenStore:
        """Return the ids of one side of a split; always the same object, which caches the lengths.

        Raises:
            DataError: There is no such split, or its files do not belong together.
        """
        self._need(split)
        if (split, side) not in self._stores:
            self._stores[split, side] = self._open_store(split, side)
        return self._stores[split, side]

    def _open_store(self, split: str, side: Side) -> TokenStore:
        dtype = self.manifest["splits"][split][side]["dtype"]
        size = len(getattr(self.pipeline, side).vocabulary)
        store = TokenStore(self.folder / f"{split}.{side}", dtype, size)
        sizes = {(self.folder / f"{split}.{one}.offsets").stat().st_size for one in SIDES}
        if len(sizes) > 1:
            raise DataError(
                f"{self.folder}: {split} has different numbers of sentences on its two sides; "
                f"prepare the folder again"
            )
        return store

    def links(self, split: str) -> LinkStore | None:
        """Return the links between the pairs of a split; None if it was prepared without.

        Raises:
            DataError: There is no such split, or its files do not belong together.
        """
        self._need(split)
        about = self.manifest["splits"][split].get("links")
        if about is None:
            return None
        source, target = (self.store(split, side).lengths for side in SIDES)
        return LinkStore(links_path(self.folder, split), about["dtype"], (source, target))

    def raw(self, split: str, side: Side) -> list[str]:
        """Return the raw lines of one side of valid or test.

        Raises:
            DataError: There is no such split, or it is train.
        """
        self._need(split)
        path = raw_path(self.folder, split, side)
        if split == "train":
            raise DataError(f"{self.folder}: has no raw text of train, only of valid and test")
        return list(read_lines(path))

    def _need(self, split: str) -> None:
        if split not in self.splits:
            raise DataError(f"{self.folder}: no split {split!r}; there is {', '.join(self.splits)}")


def links_path(folder: Path, split: str) -> Path:
    """Return the path of a split's links in a prepared folder, without suffix."""
    return folder / f"{split}.links"


def raw_path(folder: Path, split: str, side: Side) -> Path:
    """Return the path of raw text in a prepared folder or a run."""
    return folder / "raw" / f"{split}.{side}.txt"


def open_prepared(path: Path | str) -> PreparedCorpus:
    """Open a prepared folder.

    Raises:
        DataError: It is missing, is not a prepared folder, or has a newer format, or one of its
            files is missing or differs in size from what was written.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; make it with nmtflex preprocess")
    if not (folder / MANIFEST).is_file():
        raise DataError(f"{folder}: not a prepared folder: it has no {MANIFEST}")
    check_plain(folder, DataError)
    manifest = read_json(folder / MANIFEST, DataError)
    number = manifest.get("format")
    if not isinstance(number, int):
        raise DataError(f"{folder / MANIFEST}: not the manifest of a prepared folder")
    if number > FORMAT:
        raise DataError(
            f"{folder}: format {number} is newer than {FORMAT}, which this nmtflex reads; "
            f"install a newer nmtflex or prepare the folder again"
        )
    if fault := _manifest_fault(manifest):
        raise DataError(f"{folder / MANIFEST}: not the manifest of a prepared folder: {fault}")
    for name, entry in manifest["files"].items():
        file = folder / name
        if not file.is_file():
            raise DataError(f"{file}: missing; prepare the folder again")
        if (size := file.stat().st_size) != entry["bytes"]:
            raise DataError(
                f"{file}: {size} bytes, but {entry['bytes']} were written; prepare the folder again"
            )
    return PreparedCorpus(folder, manifest)


def _manifest_fault(manifest: dict[str, Any]) -> str | None:
    """Return what is wrong with a manifest, whose names and numbers are used unchecked later."""
    splits, files = manifest.get("splits"), manifest.get("files")
    if not isinstance(splits, dict) or not isinstance(files, dict):
        return "no splits, or no files"
    for name, split in splits.items():
        if name not in SPLITS:
            return f"{name!r} is not a split"
        named = SIDES if not isinstance(split, dict) or "links" not in split else (*SIDES, "links")
        for side in named:
            about = split.get(side) if isinstance(split, dict) else None
            if not isinstance(about, dict) or about.get("dtype") not in ID_TYPES:
                return f"no id type of {name}.{side}"
            missing = {f"{name}.{side}.bin", f"{name}.{side}.offsets"} - set(files)
            if missing:
                return f"no entry for {min(missing)}"
    for name, entry in files.items():
        if not isinstance(entry, dict) or type(entry.get("bytes")) is not int:
            return f"no size of {name!r}"
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\0" in name:
            return f"{name!r} is not a file inside the folder"
    return None
