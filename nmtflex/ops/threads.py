"""As many threads for the loops as PyTorch has, if there is enough work."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
import torch

# Units of keys and values per thread; with fewer, another thread does not pay.
GRAIN = 1 << 16


def _start() -> None:
    """Start numba's threads, which are not PyTorch's.

    Numba then makes OpenMP use all cores, so the user's number is set again.
    """
    chosen = torch.get_num_threads()
    numba.get_num_threads()
    if torch.get_num_threads() != chosen:
        torch.set_num_threads(chosen)


_start()


def most_threads() -> int:
    """Return how many threads the loops may use: PyTorch's, of those that numba started with."""
    config: Any = numba.config
    return min(torch.get_num_threads(), config.NUMBA_NUM_THREADS)


def threads_for(units: int) -> int:
    """Return how many threads pay for some units of keys and values."""
    return max(1, min(most_threads(), units // GRAIN))


def several_may_run() -> bool:
    """Whether two threads may run parallel loops at the same time; numba's own layer ends then."""
    return numba.threading_layer() != "workqueue"  # type: ignore[attr-defined]


class _Block(threading.local):
    """The number of threads that numba has set inside ``keep_threads``, 0 outside of it."""

    threads = 0


_block = _Block()


@contextlib.contextmanager
def keep_threads() -> Iterator[None]:
    """Leave numba's number of threads as a loop sets it, until the end of the block.

    Setting it and setting it back at every loop takes longer than a small loop.
    """
    around, before = _block.threads, numba.get_num_threads()
    _block.threads = before
    try:
        yield
    finally:
        _block.threads = around
        numba.set_num_threads(before)


def run(loop: Any, threads: int, *arguments: Any) -> Any:
    """Return what a parallel loop returns on some threads; numba's setting stays unchanged."""
    before = _block.threads or numba.get_num_threads()
    if threads != before:  # setting them takes as long as a small loop
        numba.set_num_threads(threads)
    try:
        return loop(*arguments)
    finally:
        if _block.threads:
            _block.threads = threads
        elif threads != before:
            numba.set_num_threads(before)


def run_rows(loop: Any, num_rows: int, units: int, *arguments: Any) -> None:
    """Run a loop over rows, evenly split among threads.

    Args:
        loop: Takes the arguments, and where the rows of each thread begin and end.
        num_rows: Rows.
        units: Numbers that the loop goes through.
        arguments: Of the loop.
    """
    threads = max(1, min(threads_for(units), num_rows))
    shares = np.array((0, num_rows))
    if threads > 1:
        shares = np.arange(threads + 1) * num_rows // threads
    run(loop, threads, *arguments, shares)
