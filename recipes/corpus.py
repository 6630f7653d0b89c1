"""Whether a corpus is there and whole; every fault is one line that says what to do.

- ``corpus.py need FILE...``: each is there, plain or compressed; SHA256SUMS beside it is heeded.
- ``corpus.py unpack ARCHIVE NAME FILE``: the member NAME of a tar archive becomes FILE.
- ``corpus.py count FILE LINES``: FILE has so many lines, in plain text or gzip.
- ``corpus.py head FILE LINES COPY``: the first lines of FILE, plain, gzip or xz, become COPY.
- ``corpus.py join FILE LINES COPY``: each so many lines of FILE become one line of COPY.
- ``corpus.py solid FILE COPY``: white space inside tokens, all but the space, becomes ``_``.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import lzma
import os
import re
import shutil
import sys
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

ENDINGS = ("", ".gz", ".xz", ".zst")
CHUNK = 1 << 20


class CorpusError(Exception):
    """What a person has to put right; one line."""


def find(path: Path) -> Path:
    """Return a file, or its compressed form.

    Raises:
        CorpusError: It is missing, or only half fetched.
    """
    for ending in ENDINGS:
        if (file := path.with_name(path.name + ending)).is_file():
            return file
    halves = [*path.parent.glob(f"{path.name}*.part")]
    if halves:
        raise CorpusError(f"{path} is half fetched ({halves[0]}); fetch the rest of it")
    remedy = os.environ.get("REMEDY", "set DATA to the folder of the corpus")
    raise CorpusError(f"{path} is missing; {remedy}")


def check_sum(file: Path) -> None:
    """Compare a file with SHA256SUMS beside it, where that names it.

    Raises:
        CorpusError: It has another sum.
    """
    sums = file.with_name("SHA256SUMS")
    if not sums.is_file():
        return
    for line in sums.read_text(encoding="utf-8").splitlines():
        expected, _, name = line.partition(" ")
        if name.strip().removeprefix("*").removeprefix("./") != file.name:
            continue
        with file.open("rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
        if found != expected:
            raise CorpusError(
                f"{file} has the sha256 {found}, and {sums} says {expected}; fetch it anew"
            )


def unpack(archive: Path, name: str, file: Path) -> None:
    """Take one member out of a tar archive, whatever folder of the archive it lies in.

    Raises:
        CorpusError: The archive is damaged or has no such member.
    """
    part = file.with_name(file.name + ".part")
    try:
        with tarfile.open(archive) as opened:
            members = (one for one in opened if one.isfile() and Path(one.name).name == name)
            source = opened.extractfile(next(members))
            with part.open("wb") as sink:
                shutil.copyfileobj(source, sink)  # type: ignore[arg-type]  # a file, so no None
    except StopIteration:
        raise CorpusError(f"{archive} holds no {name}; delete it to fetch it anew") from None
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise CorpusError(f"{archive}: {error}; delete it to fetch it anew") from error
    part.replace(file)


def count(file: Path, expected: int) -> None:
    """Check the number of lines.

    Raises:
        CorpusError: There are more or fewer, or the file is damaged.
    """
    lines = 0
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as opened:
            while chunk := opened.read(CHUNK):
                lines += chunk.count(b"\n")
    except (EOFError, zlib.error, OSError) as error:
        raise CorpusError(f"{file}: {error}; delete it to fetch it anew") from error
    if lines != expected:
        raise CorpusError(
            f"{file} has {lines:,} lines, and {expected:,} are expected; delete it to fetch it anew"
        )


def head(file: Path, lines: int, copy: Path) -> None:
    """Copy the first lines of a file.

    Raises:
        CorpusError: The file is damaged, or compressed with what the standard library cannot read.
    """
    write(copy, b"".join(read(file, lines)))


def join(file: Path, lines: int, copy: Path) -> None:
    """Write each so many lines of a file as one, with spaces between them.

    Raises:
        CorpusError: As ``head``.
    """
    every = [line.strip() for line in read(file, None)]
    groups = (every[at : at + lines] for at in range(0, len(every), lines))
    write(copy, b"".join(b" ".join(group) + b"\n" for group in groups))


def solid(file: Path, copy: Path) -> None:
    """Replace the white space inside tokens, such as U+3000, where an aligner would split them.

    Raises:
        CorpusError: As ``head``.
    """
    lines = (line.decode() for line in read(file, None))
    write(copy, "".join(re.sub(r"[^\S \n]", "_", line) for line in lines).encode())


def read(file: Path, lines: int | None) -> list[bytes]:
    """Return the first lines of a file, or all.

    Raises:
        CorpusError: As ``head``.
    """
    if file.suffix == ".zst":
        raise CorpusError(f"{file} is compressed with zstd; unpack it with: unzstd {file}")
    openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
    try:
        with openers.get(file.suffix, open)(file, "rb") as source:
            return list(itertools.islice(source, lines))
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        raise CorpusError(f"{file}: {error}; delete it to fetch it anew") from error


def write(copy: Path, text: bytes) -> None:
    """Write a file; one that holds the text already stays as it is."""
    if copy.is_file() and copy.read_bytes() == text:
        return
    copy.parent.mkdir(parents=True, exist_ok=True)
    part = copy.with_name(copy.name + ".part")
    part.write_bytes(text)
    part.replace(copy)


def main(task: str, *arguments: str) -> int:
    """Do one check; return the exit code."""
    try:
        if task == "need":
            for name in arguments:
                check_sum(find(Path(name)))
        elif task == "unpack":
            unpack(Path(arguments[0]), arguments[1], Path(arguments[2]))
        elif task in ("head", "join"):
            change = head if task == "head" else join
            change(find(Path(arguments[0])), int(arguments[1]), Path(arguments[2]))
        elif task == "solid":
            solid(find(Path(arguments[0])), Path(arguments[1]))
        else:
            count(find(Path(arguments[0])), int(arguments[1]))
    except CorpusError as error:
        sys.stderr.write(f"{os.environ.get('RECIPE', 'corpus.py')}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
