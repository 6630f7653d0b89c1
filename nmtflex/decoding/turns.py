"""Turns to compute: one thread of a process at a time, and the one that has waited longest is next.

Threads that decode at the same time would only take the interpreter and the cores from each other,
some thread pools of numba allow one parallel loop at a time, and some tokenizers serve one thread.
A turn is a batch or less, so a short call need not wait until a long one of another thread ends.

PyTorch keeps the number of threads for each thread that calls it, and oneMKL keeps one for all, so
it is set at every turn: results do not depend on what other threads did before.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator

import torch


class Turns:
    """A lock that is passed on in the order of asking."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._taken = False
        self._waiting: deque[threading.Event] = deque()

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the lock inside the block."""
        self._take()
        try:
            yield
        finally:
            self._pass_on()

    def _take(self) -> None:
        mine = threading.Event()
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            self._waiting.append(mine)
        try:
            mine.wait()
        except BaseException:  # Ctrl-C
            with self._guard:
                handed_over = mine not in self._waiting
                if not handed_over:
                    self._waiting.remove(mine)
            if handed_over:
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._taken = False


class _Setting(threading.local):
    """The number of threads that the call of this thread computes with, None for PyTorch's."""

    threads: int | None = None


_TURNS = Turns()
_setting = _Setting()


@contextlib.contextmanager
def computing_with(threads: int | None) -> Iterator[None]:
    """Compute with a number of threads in the turns of this thread, inside the block.

    Args:
        threads: None for the number that PyTorch has.
    """
    before, _setting.threads = _setting.threads, threads
    try:
        yield
    finally:
        _setting.threads = before


@contextlib.contextmanager
def turn(device: torch.device | None = None) -> Iterator[None]:
    """Compute inside the block, alone; blocks are not nested.

    Args:
        device: Where; a GPU becomes this thread's current one.
    """
    on_gpu = device is not None and device.type == "cuda"
    with _TURNS.turn(), torch.cuda.device(device) if on_gpu else contextlib.nullcontext():
        if _setting.threads is not None:
            torch.set_num_threads(_setting.threads)
        yield
