"""Rows in 8 bits, and what stands between two products, compiled by numba."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nmtflex.ops.arrays import Array
from nmtflex.ops.compiled import SUMS, compiled

Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]

MOST = 127  # the greatest magnitude
POSITIVE = np.int32(0x7FFFFFFF)  # all bits of a number but its sign


@compiled(**SUMS)
def quantize_row(row: Array, whole: Int8) -> np.float32:
    """Round a row [C] to integers; return its scale."""
    # Of positive numbers the greatest has the greatest bits, NaN more than all; a maximum of
    # integers is vectorised.
    bits = row.view(np.int32)
    most = np.int32(0)
    for j in range(row.shape[0]):
        most = max(most, np.int32(bits[j] & POSITIVE))
    greatest = np.int32(most).view(np.float32)
    factor = row.dtype.type(0)
    if greatest > 0:
        factor = row.dtype.type(MOST) / greatest
    for j in range(row.shape[0]):
        whole[j] = np.int8(np.rint(row[j] * factor))
    return np.float32(greatest / np.float32(MOST))


@compiled(**SUMS)
def normalize_row(row: Array, norm: Array, epsilon: float) -> None:
    """Turn a row [C] into its layer norm, whose weight and bias are [2 C]."""
    size = len(row)
    mean = 0.0
    for j in range(size):
        mean += row[j]
    mean /= size
    variance = 0.0
    for j in range(size):
        variance += (row[j] - mean) ** 2
    factor = 1 / math.sqrt(variance / size + epsilon)
    for j in range(size):
        row[j] = (row[j] - mean) * factor * norm[j] + norm[size + j]


@compiled(**SUMS)
def relu(x: float) -> float:
    """Return x where it is positive or NaN, else 0."""
    return x if x > 0 or x != x else type(x)(0)
