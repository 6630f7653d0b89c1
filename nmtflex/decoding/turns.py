"""Turns to compute: one thread of a process at a time, and the one that has waited longest is next.

Threads that decode at the same time would only take the interpreter and the cores from each other,
and some thread pools of numba allow one parallel loop at a time. A turn is a batch, so a short call
need not wait until a long one of another thread ends.

The main thread computes itself; for all others one thread does. Each thread that computes has
OpenMP threads, caches of oneDNN and a heap of its own: with eight of them a process took 450 MB
more.

PyTorch keeps the number of threads for each thread that calls it, and oneMKL keeps one for all, so
it is set at every turn: results do not depend on what other threads did before.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Result = TypeVar("Result")


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
_FOR_OTHERS = ThreadPoolExecutor(
    1, thread_name_prefix="nmtflex-turns"
)  # no thread before the first
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


def in_turn(compute: Callable[[], Result], device: torch.device) -> Result:
    """Compute alone, and return the result; ``compute`` itself may not call this.

    Args:
        compute: What is to be done.
        device: Where; a GPU becomes the current one.
    """
    threads = _setting.threads

    def prepared() -> Result:
        on_gpu = device.type == "cuda"
        with torch.cuda.device(device) if on_gpu else contextlib.nullcontext():
            if threads is not None:
                torch.set_num_threads(threads)
            return compute()

    with _TURNS.turn():
        if threading.current_thread() is threading.main_thread():
            return prepared()
        return _FOR_OTHERS.submit(prepared).result()
