"""Quantization to 8 bits and back, row by row, compiled by numba. Legend: M rows, C columns."""

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.compiled import SUMS, compiled, entry

MOST = 127  # the greatest magnitude


@entry(parallel=True)
def quantize(rows: Array, whole: NDArray[np.int8], scales: Array, shares: Whole) -> None:
    """Round rows to integers, each with its own scale: row = whole * scale.

    Args:
        rows: [M, C].
        whole: [M, C], becomes the integers, -127 to 127.
        scales: [M], becomes the scales.
        shares: Where the rows of each thread begin and end.
    """
    for share in prange(shares.shape[0] - 1):
        _quantize_rows(rows, whole, scales, shares[share], shares[share + 1])


@compiled(**SUMS)
def _quantize_rows(
    rows: Array, whole: NDArray[np.int8], scales: Array, first: int, last: int
) -> None:
    for m in range(first, last):
        row = rows[m]
        greatest = row.dtype.type(0)
        total = row.dtype.type(0)
        for j in range(row.shape[0]):
            greatest = max(greatest, abs(row[j]))
            total += row[j]
        scales[m] = greatest / row.dtype.type(MOST)
        if np.isnan(total):  # which no maximum shows, and which must stay visible
            scales[m] = np.nan
        factor = row.dtype.type(0)
        if greatest > 0:
            factor = row.dtype.type(MOST) / greatest
        for j in range(row.shape[0]):
            whole[m, j] = np.int8(np.rint(row[j] * factor))


@entry(parallel=True)
def rescale(
    whole: NDArray[np.int32], row_scales: Array, column_scales: Array, rows: Array, shares: Whole
) -> None:
    """Scale products of integers back.

    Args:
        whole: [M, C].
        row_scales: [M].
        column_scales: [C].
        rows: [M, C], becomes whole * row_scale * column_scale.
        shares: As in ``quantize``.
    """
    for share in prange(shares.shape[0] - 1):
        _rescale_rows(whole, row_scales, column_scales, rows, shares[share], shares[share + 1])


@compiled(**SUMS)
def _rescale_rows(
    whole: NDArray[np.int32],
    row_scales: Array,
    column_scales: Array,
    rows: Array,
    first: int,
    last: int,
) -> None:
    for m in range(first, last):
        scale = row_scales[m]
        for j in range(column_scales.shape[0]):
            rows[m, j] = rows.dtype.type(whole[m, j]) * (scale * column_scales[j])
