"""From opening a translator to closing it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from nmtflex.decoding.forks import check_not_forked


class _Depth(threading.local):
    """How many calls of this thread are inside each other."""

    calls = 0


class Lifetime:
    """Counts the calls that are running, so that a closed model is freed after the last of them.

    Args:
        free: Called once, when it is closed and no call is running.
    """

    def __init__(self, free: Callable[[], None]) -> None:
        self._free = free
        self._guard = threading.Lock()
        self._depth = _Depth()
        self._running = 0
        self._closed = False

    def check(self) -> None:
        """Check that a call may begin.

        Raises:
            RuntimeError: It is closed, or this process was forked after the run was loaded.
        """
        check_not_forked()
        if self._closed:
            raise RuntimeError(
                "this translator is closed; open the run again with nmtflex.load, or call inside "
                "its with block"
            )

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """Count the block as a running call, which may make others.

        Raises:
            RuntimeError: As ``check``.
        """
        with self._guard:
            if not self._depth.calls:
                self.check()
            self._running += 1
        self._depth.calls += 1
        try:
            yield
        finally:
            self._depth.calls -= 1
            with self._guard:
                self._running -= 1
                last = self._closed and not self._running
            if last:
                self._free()

    def close(self) -> None:
        """Let no more calls begin; closing again does nothing."""
        with self._guard:
            first, self._closed = not self._closed, True
            idle = not self._running
        if first and idle:
            self._free()
