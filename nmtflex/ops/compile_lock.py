"""Processes that need the same code at once: one compiles it, the others wait and load it.

One file in the folder of the code is locked, a byte of it for each piece of code. The operating
system unlocks what a process held when it ends.
"""

from __future__ import annotations

import fcntl
import functools
import os
import time
import zlib
from pathlib import Path

from nmtflex.compiling import NOTICE_OF_COMPILING

PATIENCE = 120.0  # seconds; a process that compiles for longer may be suspended
INTERVAL = 0.05  # seconds between two tries


def lock(folder: Path, name: str, patience: float = PATIENCE) -> bool:
    """Wait until no other process compiles a piece of code, and keep the others from it.

    Args:
        folder: Where the code is kept; it is made if need be.
        name: Of the code.
        patience: Seconds to wait at most. After that the code is compiled twice.

    Returns:
        Whether the folder can be locked at all.
    """
    file = _open(folder)
    if file is None:
        return False
    end = time.monotonic() + patience
    try:
        while not _locked(file, name) and time.monotonic() < end:
            NOTICE_OF_COMPILING.compiling()
            time.sleep(INTERVAL)
    except OSError:  # a file system without locks
        return False
    return True


def unlock(folder: Path, name: str) -> None:
    """Let the processes go on that wait for a piece of code, if this process locked it."""
    file = _open(folder)
    if file is not None:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, _byte(name))


@functools.cache
def _open(folder: Path) -> int | None:
    """Return the file whose bytes are locked; closing it would unlock all, so it stays open."""
    try:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        return os.open(folder / "compiling.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    except OSError:
        return None


def _locked(file: int, name: str) -> bool:
    """Whether this process has the lock, which it tries to take."""
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte(name))
    except BlockingIOError:
        return False
    return True


def _byte(name: str) -> int:
    return zlib.crc32(name.encode())
