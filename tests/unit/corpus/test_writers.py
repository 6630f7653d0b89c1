"""Text files: packed by their ending, and whole lines alone on a full disk."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import lzma
import random
import resource
import signal
import sys

import pytest
import zstandard

from nmtflex.corpus.readers import read_lines
from nmtflex.corpus.writers import open_lines

LINES = [f"line {number} 日本語" for number in range(500)]
TEXT = "".join(f"{line}\n" for line in LINES).encode()
UNPACK = {
    "": bytes,
    ".gz": gzip.decompress,
    ".xz": lzma.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


@pytest.mark.parametrize("suffix", UNPACK)
def test_the_ending_says_how_a_file_is_packed(tmp_path, suffix):
    path = tmp_path / f"out.txt{suffix}"
    with open_lines(path) as out:
        for first in range(0, len(TEXT), 1000):
            out.write(TEXT[first : first + 1000])
            out.flush()
    assert UNPACK[suffix](path.read_bytes()) == TEXT
    assert list(read_lines(path)) == LINES


@contextlib.contextmanager
def full_disk():
    """Let files grow to 5,000 bytes and no further: not even those that pytest writes to."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


def write(path) -> None:
    with open_lines(path) as out:
        for line in LINES:
            out.write(f"{line}\n".encode())
            out.flush()


def test_a_full_disk_names_the_file_and_leaves_whole_lines(tmp_path):
    path = tmp_path / "out.txt"
    with pytest.raises(OSError, match="large") as raised, full_disk():
        write(path)
    assert (raised.value.errno, raised.value.filename) == (errno.EFBIG, str(path))
    whole = TEXT[: TEXT[:5000].rfind(b"\n") + 1]
    assert path.read_bytes() == whole


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_full_disk_names_a_packed_file(tmp_path, suffix):
    path = tmp_path / f"out.txt{suffix}"
    with pytest.raises(OSError, match="large") as raised, full_disk(), open_lines(path) as out:
        out.write(random.Random(1).randbytes(200_000))
    assert raised.value.filename == str(path)


def test_standard_output_is_named_and_what_stood_there_before_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "out.txt"
    path.write_bytes(b"no line end")
    file = path.open("ab")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(file))
    monkeypatch.setattr("nmtflex.corpus.writers.OUTPUT", path)
    with pytest.raises(OSError, match="large") as raised, full_disk():
        write(None)
    assert raised.value.filename == "standard output"
    written = path.read_bytes()
    assert written.startswith(b"no line endline 0 ")
    assert written.endswith("日本語\n".encode())
    assert len(written) > 4900
