"""As many threads for the loops as PyTorch has, if there is enough work."""

from __future__ import annotations

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


def run(loop: Any, threads: int, *arguments: Any) -> None:
    """Run a parallel loop on some threads; numba's setting stays unchanged."""
    before = numba.get_num_threads()
    if threads == before:  # setting them takes as long as a small loop
        loop(*arguments)
        return
    numba.set_num_threads(threads)
    try:
        loop(*arguments)
    finally:
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
    run(loop, threads, *arguments, np.arange(threads + 1) * num_rows // threads)
