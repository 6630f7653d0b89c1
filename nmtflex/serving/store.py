"""Translated files, kept in memory until they are fetched, for a while."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import NamedTuple

KEPT = 1800.0  # seconds
MOST = 200_000_000  # bytes of all files


class Kept(NamedTuple):
    """A file."""

    name: str
    kind: str  # media type
    data: bytes
    until: float


class FileStore:
    """Files under names that cannot be guessed; the oldest ones go when there are too many.

    Args:
        clock: Seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._files: dict[str, Kept] = {}

    def keep(self, name: str, kind: str, data: bytes) -> str:
        """Keep a file; return what it is fetched by."""
        token = secrets.token_urlsafe(24)
        self._files[token] = Kept(name, kind, data, self._clock() + KEPT)
        size = sum(len(kept.data) for kept in self._files.values())
        for old, kept in list(self._files.items())[:-1]:
            if size <= MOST and kept.until > self._clock():
                break
            size -= len(kept.data)
            del self._files[old]
        return token

    def fetch(self, token: str) -> Kept | None:
        """Return a file; None if there is none, or none any more."""
        kept = self._files.get(token)
        return kept if kept is not None and kept.until > self._clock() else None
