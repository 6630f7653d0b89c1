"""A word to whoever waits while numba compiles: it happens once a machine, and takes a while."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable

VARIABLE = "NMTFLEX_COMPILE_NOTICE"  # "off" keeps it quiet
NOTICE = (
    "compiling for this machine (once; about a minute for a training, ahead with nmtflex warm-up)"
)


def _write(message: str) -> None:
    sys.stderr.write(f"nmtflex: {message}\n")


class Notice:
    """Tells once that something is being compiled.

    Args:
        tell: Takes the message; a command line puts its own in its place.
    """

    def __init__(self, tell: Callable[[str], None] = _write) -> None:
        self.tell = tell
        self._told = False

    def compiling(self) -> None:
        """Tell it, unless it was told, or another process of the same command tells it."""
        first = os.environ.get("RANK", "0") == "0" and multiprocessing.parent_process() is None
        if not self._told and first and os.environ.get(VARIABLE) != "off":
            self.tell(NOTICE)
        self._told = True


NOTICE_OF_COMPILING = Notice()


def watch_numba() -> None:
    """Tell it whenever numba compiles: it does so where its cache on disk has not the code."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, _: object) -> None:
            NOTICE_OF_COMPILING.compiling()

        def on_end(self, _: object) -> None:
            pass

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]
