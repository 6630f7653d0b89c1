"""Writing text files: packed by their suffix, and without half a line on a full disk."""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from nmtflex.files import name_file

BLOCK = 1 << 16  # bytes read at once from the end of a file
OUTPUT = Path("/dev/fd/1")  # standard output as a file, if it is one
STANDARD_OUTPUT = "standard output"  # its name in errors


@contextlib.contextmanager
def packed(file: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    """Yield a writer to a file, which packs it for a suffix ``.gz``, ``.xz`` or ``.zst``."""
    if suffix == ".gz":
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as out:  # the same text, the same bytes
            yield cast(BinaryIO, out)
    elif suffix == ".xz":
        with lzma.open(file, "wb") as out:
            yield cast(BinaryIO, out)
    elif suffix == ".zst":
        import zstandard

        with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as out:
            yield cast(BinaryIO, out)
    else:
        yield file


@contextlib.contextmanager
def open_lines(path: Path | None) -> Iterator[BinaryIO]:
    """Open a file for lines, or standard output, as bytes; a file's suffix says how it is packed.

    Raises:
        OSError: The system's error, with the file's name. Unless the file is packed, the line being
            written is cut off, so that only whole lines are left.
    """
    file = sys.stdout.buffer if path is None else path.open("wb")
    start = _size(file)
    try:
        with packed(file, "" if path is None else path.suffix) as out:
            yield out
        file.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        name_file(error, STANDARD_OUTPUT if path is None else path)
        if path is not None:
            cast(io.BufferedWriter, file).raw.close()  # what is buffered is lost
        if start is not None and (path is None or path.suffix not in (".gz", ".xz", ".zst")):
            with contextlib.suppress(OSError):
                _cut_half_line(OUTPUT if path is None else path, start)
        raise
    finally:
        if path is not None:
            file.close()


def _size(file: BinaryIO) -> int | None:
    """Return the size of an open file in bytes; None if it is not a regular file."""
    try:
        found = os.fstat(file.fileno())
    except (OSError, ValueError):  # a test's
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _cut_half_line(path: Path, start: int) -> None:
    """Cut what follows the last line end of a file, but nothing before ``start``."""
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        while end > start:
            first = max(start, end - BLOCK)
            file.seek(first)
            place = file.read(end - first).rfind(b"\n")
            if place >= 0:
                file.truncate(first + place + 1)
                return
            end = first
        file.truncate(start)
