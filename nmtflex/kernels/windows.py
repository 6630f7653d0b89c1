"""Loops over windows [N, W] themselves: check them, share them among threads, lay them out."""

from __future__ import annotations

import numpy as np

from nmtflex.kernels.arrays import Array, Whole
from nmtflex.kernels.compiled import entry


@entry()
def check(
    rows: Whole, start: Whole, stop: Whole, num_sentences: int, length: int
) -> tuple[int, int]:
    """Check that the windows lie in a memory of B sentences of S positions.

    Returns:
        W, or -1 - n if hypothesis n reads outside of the memory or nothing; and the positions that
        all read together.
    """
    widest, total = 0, 0
    for n in range(rows.shape[0]):
        if not (0 <= rows[n] < num_sentences and 0 <= start[n] < stop[n] <= length):
            return -1 - n, 0
        widest = max(widest, stop[n] - start[n])
        total += stop[n] - start[n]
    return widest, total


@entry()
def share(start: Whole, stop: Whole, total: int, threads: int) -> Whole:
    """Share hypotheses among threads so that each has about as many positions to read.

    Returns:
        Where the hypotheses of each thread begin and end, [threads + 1].
    """
    shares = np.full(threads + 1, start.shape[0])
    shares[0] = 0
    done, thread = 0, 1
    for n in range(start.shape[0]):
        done += stop[n] - start[n]
        if thread < threads and done * threads >= total * thread:
            shares[thread] = n + 1
            thread += 1
    return shares


@entry()
def spread(weights: Array, start: Whole, stop: Whole, laid_out: Array) -> None:
    """Put windows [N, W] at their positions in zeros [N, S]."""
    for n in range(start.shape[0]):
        for s in range(start[n], stop[n]):
            laid_out[n, s] = weights[n, s - start[n]]
