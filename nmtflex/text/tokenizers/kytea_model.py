"""KyTea's model files, unpacked and checked before loading."""

from __future__ import annotations

import gzip
import io
import lzma
import re
import subprocess
import sys
import zlib
from pathlib import Path

from nmtflex.errors import DataError

_HEADER = re.compile(rb"KyTea (\S+) (\S+) (\S+)\n")
MOST = 1 << 30  # bytes of an unpacked model; the large ones on KyTea's site have a tenth
_CLASSES = b"KTHRDO"  # the names of character classes, which precede a model's characters
# Loads a model and segments with it. A damaged one can kill the process that loads it.
_TRIAL = """
import resource, sys, vaporetto
model = sys.stdin.buffer.read()
most = (1 << 30) + 100 * len(model)  # bytes; numbers in a damaged one can ask for any amount
try:
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
except (OSError, ValueError):  # there is a lower bound, or the system has none
    pass
try:
    vaporetto.Vaporetto.create_from_kytea_model(model).tokenize("私はNew Yorkへ1回行く。")
except ValueError as error:
    sys.exit(str(error))
"""


def read_model(path: Path) -> bytes:
    """Return the content of a model file, unpacked from gzip, xz or zstd if needed.

    Raises:
        DataError: The file is missing, unreadable, damaged, or not a model.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path}: {error.strerror}; give KyTea's model file with --kytea-model"
        ) from error
    try:
        data = _unpack(data)
    except (EOFError, OSError, lzma.LZMAError, zlib.error, ValueError) as error:
        raise DataError(f"{path}: packed and damaged: {error}; copy it again") from error
    header = _HEADER.match(data)
    if not header:
        raise DataError(
            f"{path}: not a KyTea model: it begins with {data[:12]!r}, not with 'KyTea'; give "
            f"KyTea's model file with --kytea-model"
        )
    _, form, encoding = (part.decode("latin-1") for part in header.groups())
    if form != "B":
        raise DataError(
            f"{path}: a KyTea model of form {form!r}, but only binary ones (B) are read; train "
            f"it without -modtext"
        )
    if encoding != "utf8":
        raise DataError(
            f"{path}: a KyTea model for {encoding!r} text; use one for utf8, such as jp-0.4.7-5"
        )
    return data


def _unpack(data: bytes) -> bytes:
    """Unpack by the first bytes; KyTea's own site offers gzip."""
    packed = io.BytesIO(data)
    if data.startswith(b"\x1f\x8b"):
        with gzip.open(packed) as file:
            data = file.read(MOST + 1)
    elif data.startswith(b"\xfd7zXZ\0"):
        with lzma.open(packed) as file:
            data = file.read(MOST + 1)
    elif data.startswith(b"\x28\xb5\x2f\xfd"):
        import zstandard

        try:
            data = _unpack_zstd(packed)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from error
    if len(data) > MOST:
        raise ValueError(f"it unpacks to more than {MOST:,} bytes, more than any model")
    return data


def _unpack_zstd(packed: io.BytesIO) -> bytes:
    """Unpack one frame, up to little more than ``MOST`` bytes."""
    import zstandard

    frame = zstandard.ZstdDecompressor(max_window_size=MOST).decompressobj()
    parts, size = [], 0
    while not frame.eof and size <= MOST:
        block = packed.read(1 << 12)
        if not block:
            raise EOFError("the zstd data ends too early")
        parts.append(frame.decompress(block))
        size += len(parts[-1])
    return b"".join(parts)


def check_model(data: bytes, path: Path) -> None:
    """Load a model in a separate process, which a damaged one may kill or flood with output.

    Args:
        data: The unpacked model.
        path: Its file.

    Raises:
        DataError: It cannot be loaded.
    """
    trial = subprocess.run(
        [sys.executable, "-c", _TRIAL], input=data, capture_output=True, check=False
    )
    if trial.returncode:
        lines = trial.stderr.decode(errors="replace").strip().splitlines()
        reason = lines[-1] if trial.returncode == 1 and lines else "it cannot be loaded"
        raise DataError(f"{path}: a damaged KyTea model: {reason}; copy it again")


def characters_of(data: bytes) -> str:
    """Return the characters that a model was trained on."""
    start = data.find(_CLASSES)
    end = data.find(b"\0", start)
    return "" if start < 0 else data[start:end].decode(errors="ignore")
