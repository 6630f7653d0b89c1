"""Random numbers that depend only on a seed and a place, for compiled loops."""

from __future__ import annotations

import numpy as np

from nmtflex.ops.compiled import SUMS, compiled


@compiled(**SUMS)
def drawn(place: np.uint32, low: np.uint32, high: np.uint32) -> np.uint32:
    """Return the random number of a place, even over 32 bits.

    Mixed twice, each time with one half of the seed; otherwise seeds would give the same numbers at
    other places.

    Args:
        place: Where.
        low: The low half of the seed.
        high: The high half.
    """
    return _mixed(_mixed(np.uint32(np.uint32(place * np.uint32(0x9E3779B9)) + low)) ^ high)


@compiled(**SUMS)
def _mixed(x: np.uint32) -> np.uint32:
    """Mix all bits: Wellons's "lowbias32", https://nullprogram.com/blog/2018/07/31/."""
    x = np.uint32((x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D))
    x = np.uint32((x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B))
    return x ^ (x >> np.uint32(16))
