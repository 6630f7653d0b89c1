"""Products of rows with weights, tile by tile, compiled by numba.

Legend: M rows, C columns that come in, O columns that go out. Where weights are laid out, C is
rounded up to whole groups, and O to whole tiles.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.compiled import ROUNDED, SUMS, compiled, entry
from nmtflex.ops.linear import tiles
from nmtflex.ops.linear.int8_loops import Int8, Int32, quantize_row

ROWS = 48  # at once, so that what a product makes stays in the cache
COLUMNS, GROUP, OFFSET = tiles.COLUMNS, tiles.INT8.group, tiles.INT8.offset

single_6, single_4, single_2, single_1 = map(tiles.single_tile, tiles.ROWS)
int8_6, int8_4, int8_2, int8_1 = map(tiles.int8_tile, tiles.ROWS)

Place = tuple[int, ...]  # addresses, and what lies between rows in bytes


class Entering(NamedTuple):
    """Rows that come into a product, at most ``ROWS``."""

    numbers: Int8 | Array  # [ROWS, C and more], in the weights' format
    scales: Array  # [ROWS], in 8 bits
    first: Int32  # [ROWS], what the sums begin with in 8 bits, for the weights' offset


def laid_out(weight: NDArray[Any]) -> NDArray[Any]:
    """Lay a weight [O, C] out as tiles read it, flat; see ``tiles``."""
    int8 = weight.dtype == np.int8
    group, (out, width) = GROUP if int8 else 1, weight.shape
    whole, room = (rounded(out, COLUMNS), rounded(width, group)), weight
    if whole != weight.shape:
        room = np.zeros(whole, weight.dtype)
        room[:out, :width] = weight
    if int8:
        room = (room.view(np.uint8) + np.uint8(OFFSET)).view(np.int8)
    parts = room.reshape(-1, COLUMNS, room.shape[1] // group, group)
    return np.ascontiguousarray(parts.transpose(0, 2, 1, 3)).ravel()


def rounded(count: int, to: int) -> int:
    """Return the smallest multiple of ``to`` that is not less than ``count``."""
    return -(-count // to) * to


@entry(parallel=True)
def product(
    rows: Array,
    weights: Int8 | Array,
    scales: Array,
    bias: Array,
    made: Array,
    by_rows: bool,
    shares: Whole,
) -> None:
    """Multiply rows [M, C] by a weight, and add the bias.

    Args:
        rows: [M, C].
        weights: Laid out.
        scales: [O], of the columns in 8 bits.
        bias: Of the columns, or [0].
        made: [M, O], becomes the products.
        by_rows: Whether threads share the rows, and not the tiles of columns.
        shares: Where the rows or tiles of each thread begin and end.
    """
    count, tiles_in_all = len(rows), len(scales) // COLUMNS
    a_tile = len(weights) // tiles_in_all
    for share in prange(shares.shape[0] - 1):
        begin, end = shares[share], shares[share + 1]
        first_row, last_row = (begin, end) if by_rows else (0, count)
        first, last = (0, tiles_in_all) if by_rows else (begin, end)
        columns = slice(first * COLUMNS, last * COLUMNS)
        entering = space(rows.shape[1], weights, rows)
        for low in range(first_row, last_row, ROWS):
            high = min(low + ROWS, last_row)
            for m in range(low, high):
                enter(rows[m], entering, m - low)
            out = made[low:high, columns]
            multiply(weights, first * a_tile, scales[columns], entering, rows.shape[1], out)
            for m in range(low, high):
                for j in range(columns.start, min(columns.stop, bias.shape[0])):
                    made[m, j] += bias[j]


@compiled(**SUMS)
def space(width: int, weights: Int8 | Array, like: Array) -> Entering:
    """Return room for rows of at most ``width`` numbers."""
    numbers: Any = np.empty((ROWS, width + GROUP), weights.dtype)
    return Entering(numbers, np.empty(ROWS, like.dtype), np.empty(ROWS, np.int32))


@compiled(**SUMS)
def enter(row: Array, entering: Entering, k: int) -> None:
    """Hand a row [C] to a product, as the one numbered k."""
    numbers, width = entering.numbers[k], len(row)
    if numbers.itemsize == 1:  # known to the compiler
        entering.scales[k] = quantize_row(row, numbers)
        numbers[width : width + GROUP] = 0
        total = np.int32(0)
        for j in range(width):
            total += np.int32(numbers[j])
        entering.first[k] = -OFFSET * total
    else:
        numbers[:width] = row


@compiled(**SUMS)
def multiply(
    weights: Int8 | Array, begin: int, scales: Array, entering: Entering, width: int, made: Array
) -> None:
    """Multiply rows by a weight, tile by tile.

    Args:
        weights: Laid out, one after another.
        begin: Where this one begins.
        scales: [O], of its columns in 8 bits.
        entering: M rows.
        width: C.
        made: [M, O and more], becomes the products.
    """
    int8 = weights.itemsize == 1
    steps = -(-width // GROUP) if int8 else width
    a_tile = steps * COLUMNS * (GROUP if int8 else 4)  # bytes of its columns
    at, out = weights.ctypes.data + begin * weights.itemsize, made.ctypes.data
    x, stride = entering.numbers.ctypes.data, entering.numbers.strides[0]
    for o in range(len(scales) // COLUMNS):
        rows = x, stride, at + o * a_tile, steps
        products = out + 4 * COLUMNS * o, made.strides[0]
        if weights.itemsize == 1:
            own = entering.first.ctypes.data, entering.scales.ctypes.data
            _int8_tiles(len(made), rows, products, own, scales.ctypes.data + 4 * COLUMNS * o)
        else:
            single_tiles(len(made), rows, products)


@compiled(**ROUNDED)
def single_tiles(count: int, rows: Place, products: Place) -> None:
    """Multiply rows by a tile's columns in float32."""
    while count > 0:
        if count >= 6:
            single_6(rows, products)
            done = 6
        elif count >= 4:
            single_4(rows, products)
            done = 4
        elif count >= 2:
            single_2(rows, products)
            done = 2
        else:
            single_1(rows, products)
            done = 1
        count -= done
        rows = rows[0] + done * rows[1], rows[1], rows[2], rows[3]
        products = products[0] + done * products[1], products[1]


@compiled(**ROUNDED)
def _int8_tiles(count: int, rows: Place, products: Place, own: Place, columns: int) -> None:
    """Multiply rows by a tile's columns in 8 bits."""
    while count > 0:
        if count >= 6:
            int8_6(rows, products, own, columns)
            done = 6
        elif count >= 4:
            int8_4(rows, products, own, columns)
            done = 4
        elif count >= 2:
            int8_2(rows, products, own, columns)
            done = 2
        else:
            int8_1(rows, products, own, columns)
            done = 1
        count -= done
        rows = rows[0] + done * rows[1], rows[1], rows[2], rows[3]
        products = products[0] + done * products[1], products[1]
        own = own[0] + 4 * done, own[1] + 4 * done
