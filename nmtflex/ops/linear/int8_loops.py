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
from nmtflex.ops.recurrent.ssru_loops import step

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
            scales[m] = _quantize(rows[m], whole[m])


@entry(parallel=True)
def normalize(
    rows: Array, weight: Array, bias: Array, eps: float, whole: Int8, scales: Array, shares: Whole
) -> None:
    """Round rows to integers after layer norm.

    Args:
        rows: [M, C].
        weight: [C], of the norm.
        bias: [C], of the norm.
        eps: Added to the variance.
        whole: As in ``quantize``.
        scales: As in ``quantize``.
        shares: Of the threads.
    """
    for share in prange(shares.shape[0] - 1):
        normal = np.empty_like(bias)
        for m in range(shares[share], shares[share + 1]):
            _layer_norm(rows[m], weight, bias, eps, normal)
            scales[m] = _quantize(normal, whole[m])


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
            _rescale(products[m], row_scales[m], column_scales, bias, rows[m])


@entry(parallel=True)
def rescale_relu(
    products: Int32,
    row_scales: Array,
    column_scales: Array,
    bias: Array,
    whole: Int8,
    scales: Array,
    shares: Whole,
) -> None:
    """Scale products back, add the bias, apply relu, and round to integers again.

    Args:
        products: [M, C].
        row_scales: [M].
        column_scales: [C].
        bias: [C].
        whole: As in ``quantize``.
        scales: As in ``quantize``.
        shares: Of the threads.
    """
    for share in prange(shares.shape[0] - 1):
        hidden = np.empty_like(bias)
        for m in range(shares[share], shares[share + 1]):
            _rescale(products[m], row_scales[m], column_scales, bias, hidden)
            for j in range(hidden.shape[0]):
                hidden[j] = _relu(hidden[j])
            scales[m] = _quantize(hidden, whole[m])


@entry(parallel=True)
def rescale_ssru(
    products: Int32,
    row_scales: Array,
    column_scales: Array,
    bias: Array,
    before: Array,
    after: Array,
    rows: Array,
    shares: Whole,
) -> None:
    """Scale the products of an SSRU back, and advance it by one step; see ``layers.ssru``.

    Args:
        products: [M, 2 D]: of the forget gate, then of the input.
        row_scales: [M].
        column_scales: [2 D].
        bias: [D], of the gate.
        before: [M, D], the state c.
        after: [M, D], becomes the new state.
        rows: [M, D]; relu of the new state is added to it.
        shares: Of the threads.
    """
    size = bias.shape[0]
    for share in prange(shares.shape[0] - 1):
        both = np.empty_like(column_scales)
        for m in range(shares[share], shares[share + 1]):
            _rescale(products[m], row_scales[m], column_scales, bias, both)
            step(both[:size], both[size:], before[m], after[m])
            for j in range(size):
                rows[m, j] += _relu(after[m, j])


@compiled(**SUMS)
def _quantize(row: Array, whole: Int8) -> np.float32:
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
def _layer_norm(row: Array, weight: Array, bias: Array, eps: float, normal: Array) -> None:
    """Write the layer norm of a row [C]."""
    mean = 0.0
    for j in range(row.shape[0]):
        mean += row[j]
    mean /= row.shape[0]
    variance = 0.0
    for j in range(row.shape[0]):
        variance += (row[j] - mean) ** 2
    factor = 1 / math.sqrt(variance / row.shape[0] + eps)
    for j in range(row.shape[0]):
        normal[j] = (row[j] - mean) * factor * weight[j] + bias[j]


@compiled(**SUMS)
def _rescale(products: Int32, scale: float, scales: Array, bias: Array, row: Array) -> None:
    """Write products [C] in the scales of row and columns; the first ones get the bias added."""
    for j in range(row.shape[0]):
        row[j] = row.dtype.type(products[j]) * (scale * scales[j])
    for j in range(bias.shape[0]):
        row[j] += bias[j]


@compiled(**SUMS)
def _relu(x: float) -> float:
    """Return x where it is positive or NaN, else 0."""
    return x if x > 0 or x != x else type(x)(0)
