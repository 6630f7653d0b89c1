"""Rows in 8 bits and back, compiled by numba.

Legend: M rows, C columns. ``shares`` says where the rows of each thread begin and end; a row's
numbers depend on nothing else. Arrays that a call leaves out have length 0.
"""

from __future__ import annotations

import math

import numpy as np
from numba import prange
from numpy.typing import NDArray

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.compiled import SUMS, compiled, entry

Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]

MOST = 127  # the greatest magnitude
POSITIVE = np.int32(0x7FFFFFFF)  # all bits of a number but its sign


@entry(parallel=True)
def quantize(rows: Array, whole: Int8, scales: Array, shares: Whole) -> None:
    """Round rows to integers, each with its own scale: row = whole * scale.

    Args:
        rows: [M, C].
        whole: [M, C], becomes the integers, -127 to 127.
        scales: [M], becomes the scales.
        shares: Of the threads.
    """
    for share in prange(shares.shape[0] - 1):
        for m in range(shares[share], shares[share + 1]):
            scales[m] = quantize_row(rows[m], whole[m])


@entry(parallel=True)
def rescale(
    products: Int32,
    row_scales: Array,
    column_scales: Array,
    bias: Array,
    rows: Array,
    shares: Whole,
) -> None:
    """Scale products of integers back, and add the bias.

    Args:
        products: [M, C].
        row_scales: [M].
        column_scales: [C].
        bias: [C] or [0].
        rows: [M, C], becomes products * row_scale * column_scale + bias.
        shares: Of the threads.
    """
    for share in prange(shares.shape[0] - 1):
        for m in range(shares[share], shares[share + 1]):
            rescale_row(products[m], row_scales[m], column_scales, rows[m])
            for j in range(bias.shape[0]):
                rows[m, j] += bias[j]


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
def rescale_row(products: Int32, scale: float, scales: Array, row: Array) -> None:
    """Write products [C] in the scales of row and columns."""
    for j in range(row.shape[0]):
        row[j] = row.dtype.type(products[j]) * (scale * scales[j])


@compiled(**SUMS)
def relu(x: float) -> float:
    """Return x where it is positive or NaN, else 0."""
    return x if x > 0 or x != x else type(x)(0)
