"""Residual sublayers stage by stage, in 8 bits or in float32, compiled by numba.

A program is a list of stages. One call runs some of them for all rows, and each kind of stage
stands in it once: a row's numbers are the same to the last bit, whether a call runs the whole
program or a single stage, and whatever rows are beside it.

Legend: M rows, D units of a row, P stages, h heads, A units of a head, B sentences, S source
positions. ``shares`` says where the rows of each thread begin and end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.attend.loops import add_rows, score, softmax
from nmtflex.ops.compiled import SUMS, compiled, entry
from nmtflex.ops.linear.int8_loops import (
    Int8,
    Int32,
    normalize_row,
    quantize_row,
    relu,
    rescale_row,
)
from nmtflex.ops.recurrent.ssru_loops import step

# Kinds of stages, and the columns of a program that they read.
ENTER, PRODUCT, SSRU, ATTEND, RELU, ADD = range(6)
KIND, NORM, SCALES, BIAS, WEIGHT, OUT, IN, PLACE = range(8)
NONE = -1  # no norm, or no bias


class Fixed(NamedTuple):
    """What does not change from call to call; a stage's columns say where its own part begins."""

    program: Whole  # [P, 8]
    weights: Int8 | Array  # of all products, flat
    numbers: Array  # scales of columns, biases and norms, flat
    epsilon: float  # of the norms


class Source(NamedTuple):
    """What K sublayers attend to; the sentences of head i are from i B on."""

    keys: Array  # [K, h B, S, A]
    values: Array  # [K, h B, S, A]
    lengths: Whole  # [h B]
    rows: Whole  # [M], the sentence of each row
    heads: int  # h
    scale: float  # of the scores


class Moving(NamedTuple):
    """What a call reads and writes."""

    x: Array  # [M, D], the rows
    before: Array  # [L, M, D], states of L SSRUs
    after: Array  # [L, M, D], become the new states
    entering: Int8 | Array  # [M, most that comes into a product], rows in the weights' format
    scales: Array  # [M], theirs
    products: Int32 | Array  # [M, most that goes out of a product]
    weights: Array  # [K, h, M, S], become the weights of attention


@entry(parallel=True)
def run_stages(
    fixed: Fixed, first: int, last: int, source: Source, moving: Moving, shares: Whole
) -> None:
    """Run the stages ``first <= p < last`` of a program."""
    for share in prange(shares.shape[0] - 1):
        low, high = shares[share], shares[share + 1]
        room = np.empty(max(moving.products.shape[1], moving.x.shape[1]), moving.x.dtype)
        for p in range(first, last):
            stage = fixed.program[p]
            if stage[KIND] == PRODUCT:
                if fixed.weights.itemsize == 1:  # known to the compiler
                    _multiply(fixed.weights, stage, moving, low, high)
                else:
                    _multiply_exactly(fixed.weights, stage, moving, low, high)
            else:
                for m in range(low, high):
                    _run(fixed, stage, source, moving, m, room[: stage[OUT]])


@compiled(**SUMS)
def _multiply(weights: Int8, stage: Whole, moving: Moving, low: int, high: int) -> None:
    """Multiply the rows ``low <= m < high`` by a weight; as integers, so in any order."""
    width = stage[IN]
    for o in range(stage[OUT]):
        begin = stage[WEIGHT] + o * width
        weight = weights[begin : begin + width]
        for m in range(low, high):
            row = moving.entering[m]
            total = np.int32(0)
            for i in range(width):
                total += np.int32(row[i]) * np.int32(weight[i])
            moving.products[m, o] = total


@compiled(**SUMS)
def _multiply_exactly(weights: Array, stage: Whole, moving: Moving, low: int, high: int) -> None:
    """Multiply the rows ``low <= m < high`` by a weight in float32.

    Two rows by four columns at a time: eight sums keep the processor busy, and what is read is read
    fewer times. Where a row or columns are missing, the last ones are computed again.
    """
    width, last = stage[IN], stage[OUT] - 1
    for o in range(0, stage[OUT], 4):
        o1, o2, o3 = min(o + 1, last), min(o + 2, last), min(o + 3, last)
        w = _row(weights, stage, o)
        w1, w2, w3 = _row(weights, stage, o1), _row(weights, stage, o2), _row(weights, stage, o3)
        for m in range(low, high, 2):
            n = min(m + 1, high - 1)
            x, y = moving.entering[m], moving.entering[n]
            a = b = c = d = e = f = g = h = x.dtype.type(0)
            for i in range(width):
                a += x[i] * w[i]
                b += x[i] * w1[i]
                c += x[i] * w2[i]
                d += x[i] * w3[i]
                e += y[i] * w[i]
                f += y[i] * w1[i]
                g += y[i] * w2[i]
                h += y[i] * w3[i]
            first, second = moving.products[m], moving.products[n]
            first[o], first[o1], first[o2], first[o3] = a, b, c, d
            second[o], second[o1], second[o2], second[o3] = e, f, g, h


@compiled(**SUMS)
def _row(weights: Array, stage: Whole, o: int) -> Array:
    """Return the row of a weight that makes the product's column o."""
    begin = stage[WEIGHT] + o * stage[IN]
    return weights[begin : begin + stage[IN]]


@compiled(**SUMS)
def _run(fixed: Fixed, stage: Whole, source: Source, moving: Moving, m: int, made: Array) -> None:
    """Run one stage for one row; ``made`` is room for what a product makes."""
    kind, x = stage[KIND], moving.x[m]
    if kind == ENTER:
        made[:] = x
    else:
        _read(fixed.numbers, stage, moving.products[m], moving.scales[m], made)
    if kind == SSRU:
        after = moving.after[stage[PLACE], m]
        step(made[: len(x)], made[len(x) :], moving.before[stage[PLACE], m], after)
        made = made[: len(x)]
        made[:] = after
    if kind in (SSRU, RELU):
        for j in range(len(made)):
            made[j] = relu(made[j])
    if kind == ATTEND:
        _attend(source, stage[PLACE], m, made, moving.weights)
    if kind in (SSRU, ADD):
        made = _added(x, made)
    if stage[NORM] != NONE:
        norm = fixed.numbers[stage[NORM] : stage[NORM] + 2 * len(x)]
        normalize_row(made, norm, fixed.epsilon)
    if kind in (ENTER, ATTEND, RELU):
        moving.scales[m] = _enter(made, moving.entering[m])


@compiled(**SUMS)
def _read(numbers: Array, stage: Whole, products: Int32, scale: float, made: Array) -> None:
    """Write products in their scales, with the bias."""
    begin = stage[SCALES]
    rescale_row(products, scale, numbers[begin : begin + stage[OUT]], made)
    if stage[BIAS] != NONE:
        for j in range(stage[IN]):
            made[j] += numbers[stage[BIAS] + j]


@compiled(**SUMS)
def _enter(row: Array, entering: Int8 | Array) -> np.float32:
    """Hand a row to a product; return its scale."""
    if entering.itemsize == 1:
        return quantize_row(row, entering)
    entering[: len(row)] = row
    return np.float32(1)


@compiled(**SUMS)
def _added(x: Array, made: Array) -> Array:
    """Add to a row, and return it."""
    for j in range(len(x)):
        x[j] += made[j]
    return x


@compiled(**SUMS)
def _attend(source: Source, place: int, m: int, row: Array, weights: Array) -> None:
    """Turn the queries of all heads in a row into their contexts."""
    keys, values = source.keys[place], source.values[place]
    size, sentences = keys.shape[2], len(source.lengths) // source.heads
    for head in range(source.heads):
        at = head * sentences + source.rows[m]
        length = source.lengths[at]
        part = row[head * size : (head + 1) * size]
        for a in range(size):
            part[a] *= source.scale
        own = weights[place, head, m]
        score(part, part[:0], keys[at, :length], own[:length])
        softmax(own[:length])
        own[length:] = 0
        part[:] = 0
        add_rows(own[:length], values[at, :length], part)
