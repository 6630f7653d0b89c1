"""How threads wait for each other: spinning on a quiet machine, asleep on a busy one.

A step of a model is hundreds of short parallel loops, and a thread that has finished its share
waits for the others. It spins, since falling asleep and waking up takes as long as a short loop. If
other programs use the same cores that is ruinous: a spinning thread keeps the one that it waits for
from running, and decoding takes four to seven times as long.

So the process measures how long its threads wait for a core. If that is long, GNU's OpenMP library,
which PyTorch and numba use, is made to wait asleep. It does so by itself while it manages more
threads than there are cores (libgomp's manual, GOMP_SPINCOUNT), so helper threads open idle teams
of their own. Once the machine is quiet the helpers end, and their teams with them. The number of
threads that compute stays the same, and so do the results.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import threading
import time
from pathlib import Path

import numpy as np
import torch
from numba import prange

from nmtflex.ops.arrays import Array
from nmtflex.ops.compiled import entry
from nmtflex.ops.threads import several_may_run
from nmtflex.workers import usable_cores

INTERVAL = 0.25  # seconds between two looks
# Seconds that threads were kept waiting in a second. Measured on two cores: at most 0.2 alone, and
# beside one neighbour 0.8 awake and 0.4 asleep.
BUSY, QUIET = 0.3, 0.25
CALM = 8  # looks in a row that must be quiet
SPARE = 4  # with more cores than this times the threads, there is room for neighbours
TASKS = Path("/proc/self/task")


@functools.cache
def watch() -> None:
    """Start watching the machine, if threads can get in each other's way (on Linux)."""
    team = torch.get_num_threads()
    readable = (TASKS / str(os.getpid()) / "schedstat").exists()
    if readable and team > 1 and usable_cores() <= SPARE * team:
        watcher = Watcher()
        watcher.start()
        atexit.register(watcher.end)


class Watcher(threading.Thread):
    """Makes threads wait asleep while the machine is busy, until the process ends."""

    def __init__(self) -> None:
        super().__init__(name="nmtflex-watcher", daemon=True)
        self.crowd: Crowd | None = None  # while the machine is busy
        self._calm = 0  # quiet looks in a row
        self._over = threading.Event()

    def run(self) -> None:
        """Look every ``INTERVAL`` seconds."""
        before, then = kept_waiting(), time.monotonic()
        while not self._over.wait(INTERVAL):
            after, now = kept_waiting(), time.monotonic()
            self.look((after - before) / (now - then))
            before, then = after, now

    def end(self) -> None:
        """End, and the helpers too: one inside PyTorch while Python shuts down would abort it."""
        if not self.is_alive():  # in a fork it is not
            return
        self._over.set()
        self.join()
        if self.crowd is not None:
            self.crowd.leave()

    def look(self, share: float) -> None:
        """Act on how long threads waited for a core, in seconds per second."""
        self._calm = self._calm + 1 if share < QUIET else 0
        if self.crowd is None and share > BUSY:
            self.crowd = Crowd()
        elif self.crowd is not None and self._calm >= CALM:
            self.crowd.leave()
            self.crowd = None


class Crowd:
    """Helper threads with idle teams, so many that libgomp manages more threads than cores."""

    def __init__(self) -> None:
        self._over = threading.Event()
        team = max(2, torch.get_num_threads())  # it may have changed since the look
        added = team - 1  # by each helper: all threads of its team but one
        count = max(1, -(-(usable_cores() - added) // added))
        self.helpers = [threading.Thread(target=self._stay, daemon=True) for _ in range(count)]
        for helper in self.helpers:
            helper.start()

    def leave(self) -> None:
        """End the helpers, and their teams; wait for that."""
        self._over.set()
        for helper in self.helpers:
            helper.join()

    def _stay(self) -> None:
        torch.zeros(1 << 20).add_(1)  # large enough for a team of PyTorch's
        if several_may_run():
            touch(np.zeros(64))  # has a team of numba's
        self._over.wait()


@entry(parallel=True)
def touch(numbers: Array) -> None:
    """Go once through some numbers, with all threads."""
    for i in prange(numbers.shape[0]):
        numbers[i] += 1


def kept_waiting() -> float:
    """Return the seconds that this process's threads were ready without a core, summed up."""
    total = 0
    for task in TASKS.iterdir():
        with contextlib.suppress(OSError):  # a thread that has just ended
            total += int((task / "schedstat").read_bytes().split()[1])
    return total / 1e9
