r"""Lines of text files, plain or compressed: split at "\n" alone, strict UTF-8."""

from __future__ import annotations

import codecs
import glob
import gzip
import itertools
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from nmtflex.errors import DataError
from nmtflex.text.visible import counted

BLOCK = 1 << 20  # bytes read at once
PACKED_BLOCK = 1 << 16  # bytes of zst, each block unpacked at once
SUFFIXES = ("", ".gz", ".xz", ".zst")
STANDARD_INPUT = "standard input"  # its name in errors


def find_text(prefix: Path, lang: str) -> Path:
    """Return the file of a corpus prefix in a language: plain, gz, xz or zst, in this order.

    Raises:
        DataError: There is no such file; the message lists what was tried and what exists.
    """
    names = [f"{prefix.name}.{lang}{suffix}" for suffix in SUFFIXES]
    hint = ""
    if prefix.is_file():
        hint = (
            "give the prefix without the language, or --format aspec for a file in ASPEC's format"
        )
    return find_packed(prefix, names, f"no file for language {lang!r}", hint)


def find_packed(path: Path, names: list[str], problem: str, hint: str) -> Path:
    """Return the first file that exists of some names beside ``path``.

    Raises:
        DataError: None exists; says the problem, the names and the hint, or else what exists.
    """
    for name in names:
        if (file := path.with_name(name)).is_file():
            return file
    if not hint and not path.parent.is_dir():
        hint = f"there is no folder {path.parent}"
    elif not hint:
        others = sorted(file.name for file in path.parent.glob(f"{glob.escape(path.name)}.*"))
        hint = f"there is {', '.join(others)}" if others else ""
    raise DataError(f"{path}: {problem}; tried {', '.join(names)}" + f"; {hint}" * bool(hint))


def unread_beside(path: Path) -> list[Path]:
    """Return the files with the same name but other packing, which ``find_text`` did not choose."""
    plain = path.with_suffix("") if path.suffix in SUFFIXES[1:] else path
    named = [plain.with_name(plain.name + suffix) for suffix in SUFFIXES]
    return [other for other in named if other != path and other.is_file()]


def read_lines(path: Path) -> Iterator[str]:
    r"""Yield a file's lines without "\n"; a byte-order mark at its start is dropped.

    Raises:
        DataError: The file is missing, not UTF-8, contains NUL bytes, or is compressed and damaged.
    """
    return _lines(_blocks(path), str(path))


def read_stream(stream: BinaryIO, name: str = STANDARD_INPUT) -> Iterator[str]:
    """Yield a binary stream's lines as ``read_lines`` does, each as soon as it arrives.

    Raises:
        DataError: The text is not UTF-8 or contains NUL bytes.
    """
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
    return _lines(iter(partial(read, BLOCK), b""), name)


def starts_with_mark(path: Path) -> bool:
    """Whether a text starts with a UTF-8 byte-order mark."""
    return next(_blocks(path), b"").startswith(codecs.BOM_UTF8)


def _blocks(path: Path) -> Iterator[bytes]:
    """Yield a file's bytes, decompressed; errors name the file."""
    kind = path.suffix.removeprefix(".") if path.suffix in SUFFIXES else ""
    try:
        if kind == "zst":
            yield from _zstd_blocks(path)
            return
        with _open(path, kind) as file:
            yield from iter(partial(file.read, BLOCK), b"")
    except EOFError as error:
        raise DataError(f"{path}: truncated: the {kind} data ends too early") from error
    except (lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path}: not a valid {kind} file: {error}") from error
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from error


def _open(path: Path, kind: str) -> BinaryIO:
    if kind == "gz":
        return cast(BinaryIO, gzip.open(path))
    if kind == "xz":
        return cast(BinaryIO, lzma.open(path))
    return path.open("rb")


def _zstd_blocks(path: Path) -> Iterator[bytes]:
    """Yield decompressed bytes, frame by frame; zstandard's own reader accepts truncated ones."""
    import zstandard

    with path.open("rb") as file:
        frame = None
        while data := file.read(PACKED_BLOCK):
            while data:
                frame = frame or zstandard.ZstdDecompressor().decompressobj()
                try:
                    yield frame.decompress(data)
                except zstandard.ZstdError as error:
                    raise DataError(f"{path}: not a valid zst file: {error}") from error
                data = frame.unused_data
                if frame.eof:
                    frame = None
    if frame is not None:
        raise EOFError


def _lines(blocks: Iterable[bytes], name: str) -> Iterator[str]:
    """Split blocks of bytes into lines, many lines at a time."""
    number = 0  # lines before the current ones
    pending: list[bytes] = []  # the start of a line whose end has not come yet
    fresh = True
    for block in blocks:
        if fresh and block:
            block = block.removeprefix(codecs.BOM_UTF8)
            fresh = False
        head, newline, tail = block.rpartition(b"\n")
        if newline:
            data = b"".join(pending) + head
            yield from _decode(data, name, number)
            number += data.count(b"\n") + 1
            pending = []
        if tail:
            pending.append(tail)
    if pending:
        yield from _decode(b"".join(pending), name, number)


def _decode(data: bytes, name: str, before: int) -> Iterator[str]:
    r"""Decode lines separated by "\n"; ``before`` is the number of lines before them.

    Lines before a fault are yielded first, so that a stream loses no valid line.
    """
    fault = data.find(b"\0")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        fault = min(error.start, fault) if fault >= 0 else error.start
    if fault < 0:
        yield from text.split("\n")
        return
    good, newline, _ = data[:fault].rpartition(b"\n")
    if newline:
        yield from good.decode("utf-8").split("\n")
    line, column = _place(data, fault)
    where = f"{name}:{before + line}"
    if data[fault] == 0:
        raise DataError(
            f"{where}: NUL byte at column {column}; the file is not plain text, or it is UTF-16: "
            f"convert it with iconv"
        )
    raise DataError(
        f"{where}: not valid UTF-8 (byte 0x{data[fault]:02x} at column {column}); convert the "
        f"file with iconv"
    )


def read_pairs(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of two parallel files in pairs.

    Raises:
        DataError: One has fewer lines than the other, or cannot be read.
    """
    files = read_lines(source), read_lines(target)
    for count, (left, right) in enumerate(itertools.zip_longest(*files)):
        if left is None or right is None:
            longer = count + 1 + sum(1 for _ in files[left is None])
            counts = (count, longer) if left is None else (longer, count)
            raise DataError(
                f"{source} has {counted(counts[0], 'line')} but {target} has {counts[1]:,}; "
                f"line i of one must translate line i of the other"
            )
        yield left, right


def _place(data: bytes, position: int) -> tuple[int, int]:
    """Return line and column, from 1, of a byte; columns are characters."""
    start = data.rfind(b"\n", 0, position) + 1
    return data.count(b"\n", 0, position) + 1, len(data[start:position].decode("utf-8")) + 1
