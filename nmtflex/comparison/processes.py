"""Commands of nmtflex in processes of their own, one or several at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any, Self

from nmtflex.comparison.journal import STOPPED
from nmtflex.workers import default_threads


class Processes:
    """Runs commands, from any thread, until the first signal.

    A signal is for the commands to answer, which save their state. Those that run are waited for,
    and no other one starts.

    Args:
        jobs: How many run at once. Each gets an equal part of the cores.
        options: Words that follow every command.
    """

    def __init__(self, jobs: int = 1, options: Sequence[str] = ()) -> None:
        self._options = options
        self._threads = max(1, default_threads() // jobs)
        self._children: set[subprocess.Popen[str]] = set()
        self._received: list[int] = []
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._pass_on) for number in STOPPED}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __call__(self, words: Sequence[str]) -> tuple[int, str]:
        """Run a command; return its exit code and its standard output."""
        if self._received:
            return 128 + self._received[0], ""
        child = subprocess.Popen(
            [sys.executable, "-m", "nmtflex", *words, *self._options],
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env=os.environ | {"OMP_NUM_THREADS": str(self._threads)},
        )
        self._children.add(child)
        if signal.SIGTERM in self._received:  # it came while the child was started
            child.terminate()
        printed, _ = child.communicate()
        self._children.discard(child)
        return child.returncode, printed

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        self._received.append(number)
        if number == signal.SIGTERM:  # Ctrl-C reaches the children without our help
            for child in list(self._children):
                child.terminate()
