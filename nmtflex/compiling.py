"""A notice to the user while numba compiles, which takes a while, once per machine."""

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
    """Reports once that something is being compiled.

    Args:
        tell: Takes the message; a command replaces it by its own.
    """

    def __init__(self, tell: Callable[[str], None] = _write) -> None:
        self.tell = tell
        self._told = False

    def compiling(self) -> None:
        """Report it, unless that was done before or another process of the command does it."""
        first = os.environ.get("RANK", "0") == "0" and multiprocessing.parent_process() is None
        if not self._told and first and os.environ.get(VARIABLE) != "off":
            self.tell(NOTICE)
        self._told = True


NOTICE_OF_COMPILING = Notice()


def watch_numba() -> None:
    """Report it when numba compiles, which it does if its cache on disk lacks the code."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, _: object) -> None:
            NOTICE_OF_COMPILING.compiling()

        def on_end(self, _: object) -> None:
            pass

    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]
