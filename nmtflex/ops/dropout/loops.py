"""The loop of dropout on the CPU, compiled by numba; ``cpu`` calls it."""

from __future__ import annotations

import numpy as np
from numba import prange

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.compiled import SUMS, compiled, entry
from nmtflex.ops.draws import drawn
from nmtflex.ops.halves import Bits, cut, widened


@entry(parallel=True)
def drop(x: Array, left: Array, p: float, seed: int, shares: Whole) -> None:
    """Set a share of all numbers to 0, and divide the others by 1 - p.

    Args:
        x: [M].
        left: [M], becomes x / (1 - p), or 0.
        p: The share.
        seed: From 0 up to 2^63 - 1.
        shares: Where the numbers of each thread begin and end.
    """
    for share in prange(shares.shape[0] - 1):
        drop_share(x, left, p, seed, shares[share], shares[share + 1])


@compiled(**SUMS)
def drop_share(
    x: Array, left: Array, p: float, seed: int, first: int, last: int, before: int = 0
) -> None:
    """Do what ``drop`` does from one place to another; ``left`` may be ``x`` itself.

    x may be a part of more numbers, of which so many are ``before`` it.
    """
    low, high = np.uint32(seed), np.uint32(seed >> 32)
    least = np.uint32(p * 2.0**32)
    scale, nothing = x.dtype.type(1 / (1 - p)), x.dtype.type(0)
    for i in range(first, last):
        # A product with 0, so that NaN and infinity stay in sight.
        number = drawn(np.uint32(before + i), low, high)
        left[i] = x[i] * (scale if number >= least else nothing)


@entry(parallel=True)
def drop_bfloat16(x: Bits, left: Bits, p: float, seed: int, shares: Whole) -> None:
    """Do what ``drop`` does, on the bits of bfloat16 numbers."""
    for share in prange(shares.shape[0] - 1):
        _drop_bfloat16_share(x, left, p, seed, shares[share], shares[share + 1])


@compiled(**SUMS)
def _drop_bfloat16_share(x: Bits, left: Bits, p: float, seed: int, first: int, last: int) -> None:
    low, high = np.uint32(seed), np.uint32(seed >> 32)
    least = np.uint32(p * 2.0**32)
    scale, nothing = np.float32(1 / (1 - p)), np.float32(0)
    for i in range(first, last):
        factor = scale if drawn(np.uint32(i), low, high) >= least else nothing
        left[i] = cut(widened(x[i]) * factor)
