"""Loops over windows [N, W] themselves: find, check, share among threads, lay out."""

from __future__ import annotations

import numpy as np

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.compiled import ROUNDED, compiled, entry


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


@entry(rounding=True)
def below(
    tau: float,
    gate: Array,
    focus: Array,
    spread: float,
    lengths: Whole,
    start: Whole,
    stop: Whole,
) -> None:
    """Find where gate (s - focus)^2 / spread is below tau; see ``threshold.window_below``."""
    for n in range(gate.shape[0]):
        start[n], stop[n] = edges(tau, gate[n], focus[n], spread, lengths[n])


@compiled(**ROUNDED)
def edges(
    tau: float, gate: float, focus: float, spread: float, length: int
) -> tuple[np.int64, np.int64]:
    """Return the first position of one such window, and its end."""
    kind = type(focus)
    last = kind(length - 1)
    if np.isnan(gate + focus):  # of broken weights, which the context shall show
        return np.int64(0), np.int64(1)
    radius = np.sqrt(spread * tau / max(gate, np.finfo(kind).tiny))
    low = min(max(np.ceil(focus - radius), kind(0)), last)
    high = min(np.floor(focus + radius), last)
    # The radius says where to look; which position at the edge is in, the penalty decides.
    low -= _penalty(low - 1, gate, focus, spread) < tau
    low += not _penalty(low, gate, focus, spread) < tau
    high += _penalty(high + 1, gate, focus, spread) < tau
    high -= not _penalty(high, gate, focus, spread) < tau
    low, high = max(low, kind(0)), min(high, last)
    if low > high:
        low = high = min(max(np.ceil(focus - kind(0.5)), kind(0)), last)
    return np.int64(low), np.int64(high) + 1


@compiled(**ROUNDED)
def _penalty(position: float, gate: float, focus: float, spread: float) -> float:
    """Return the penalty in the format of its arguments, rounded as PyTorch does."""
    kind = type(focus)
    away = kind(position) - focus
    return gate * (away * away) / spread
