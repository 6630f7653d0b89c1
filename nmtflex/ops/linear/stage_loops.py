"""Residual sublayers stage by stage, in 8 bits or in float32, compiled by numba.

A program is a list of stages, which one call runs for all rows. A row's numbers are the same to the
last bit whatever rows are beside it.

Legend: M rows, D units of a row, P stages, h heads, A units of a head, B sentences, S source
positions, T steps so far, R rows of a cache. ``shares`` says where the rows of each thread begin
and end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.attend.loops import add_rows, score, softmax
from nmtflex.ops.cache.loops import attend_row
from nmtflex.ops.compiled import SUMS, compiled, entry
from nmtflex.ops.linear.int8_loops import Int8, normalize_row, relu
from nmtflex.ops.linear.product_loops import COLUMNS, ROWS, enter, multiply, space
from nmtflex.ops.recurrent.ssru_loops import step

# Kinds of stages, those whose rows go into a product, and the columns of a program.
PRODUCT, ENTER, SELF, ATTEND, RELU, SSRU, ADD, KEEP, TAKE, SHOW, JOIN, LEAVE = range(12)
LEAVING = (ENTER, SELF, ATTEND, RELU, TAKE)
KIND, NORM, SCALES, BIAS, WEIGHT, OUT, IN, PLACE = range(8)
NONE = -1  # no norm, or no bias


class Fixed(NamedTuple):
    """What does not change from call to call; a stage's columns say where its own part begins."""

    program: Whole  # [P, 8]
    weights: Int8 | Array  # of all products, flat
    numbers: Array  # scales of columns, biases and norms, flat
    epsilon: float  # of the norms
    widest: int  # most that comes into a product, or goes out of one


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
    before: Array  # [M, L, D], states of L SSRUs
    after: Array  # [M, L, D], become the new states
    weights: Array  # [K, h, M, S], become the weights of attention
    cache: Array  # [R, L 2 D], keys and values of all steps, of L layers of self-attention
    places: Whole  # [M, T], the row of each step in it, this step's last
    taken: Array  # [M, D], rows of another operation
    kept: Array  # [M, O], become the rows that another operation is to read


@entry(parallel=True)
def run_stages(fixed: Fixed, source: Source, moving: Moving, shares: Whole) -> None:
    """Run all stages of a program for M rows."""
    for share in prange(shares.shape[0] - 1):
        entering = space(fixed.widest, fixed.weights, moving.x)
        made = np.empty((ROWS, fixed.widest + COLUMNS), moving.x.dtype)
        seen = np.empty((source.heads, moving.places.shape[1]), moving.x.dtype)
        for low in range(shares[share], shares[share + 1], ROWS):
            high = min(low + ROWS, shares[share + 1])
            for p in range(len(fixed.program)):
                stage = fixed.program[p]
                if stage[KIND] == PRODUCT:
                    scales = _part(fixed, stage[SCALES], stage[OUT])
                    begin, width = stage[WEIGHT], stage[IN]
                    multiply(fixed.weights, begin, scales, entering, width, made[: high - low])
                else:
                    for m in range(low, high):
                        row = made[m - low, : stage[OUT]]
                        row = _run(fixed, stage, source, moving, m, row, seen)
                        if stage[KIND] in LEAVING:
                            enter(row, entering, m - low)


@compiled(**SUMS)
def _part(fixed: Fixed, begin: int, size: int) -> Array:
    """Return some of the numbers that do not change."""
    return fixed.numbers[begin : begin + size]


@compiled(**SUMS)
def _run(
    fixed: Fixed, stage: Whole, source: Source, moving: Moving, m: int, made: Array, seen: Array
) -> Array:
    """Run one stage for one row; return what goes into the next product.

    ``made`` is what a product has made, and ``seen`` room for weights of the steps.
    """
    kind, x = stage[KIND], moving.x[m]
    _begin(fixed, stage, moving, m, made)
    if kind == SSRU:
        made = _mix(stage[PLACE], moving, m, made)
    elif kind == SELF:
        made = _look_back(stage[PLACE], moving, m, made, seen)
    elif kind == ATTEND:
        _attend(source, stage[PLACE], m, made, moving.weights)
    elif kind == RELU:
        _rectify(made)
    if kind in (SSRU, ADD, JOIN):
        _add(made, x)
    if kind in (SSRU, ADD, JOIN, LEAVE):
        made = x
    if stage[NORM] != NONE:
        normalize_row(made, _part(fixed, stage[NORM], 2 * len(x)), fixed.epsilon)
    if kind in (KEEP, SHOW):
        moving.kept[m] = made
    return made


@compiled(**SUMS)
def _begin(fixed: Fixed, stage: Whole, moving: Moving, m: int, made: Array) -> None:
    """Read what a stage begins with."""
    if stage[KIND] in (ENTER, SHOW):
        made[:] = moving.x[m]
    elif stage[KIND] in (TAKE, JOIN):
        made[:] = moving.taken[m]
    elif stage[BIAS] != NONE:
        _add(_part(fixed, stage[BIAS], stage[IN]), made)


@compiled(**SUMS)
def _mix(place: int, moving: Moving, m: int, made: Array) -> Array:
    """Advance an SSRU: its products [2 D] become its output [D]."""
    after = moving.after[m, place]
    gates, made = made[: len(after)], made[len(after) :]
    step(gates, made, moving.before[m, place], after)
    made[:] = after
    _rectify(made)
    return made


@compiled(**SUMS)
def _look_back(place: int, moving: Moving, m: int, made: Array, seen: Array) -> Array:
    """Attend to the steps so far: query, key and value [3 D] become a context [D]."""
    places, size = moving.places[m], moving.x.shape[1]
    begin = place * 2 * size
    moving.cache[places[-1], begin : begin + 2 * size] = made[size:]
    query, made = made[:size], made[size : 2 * size]
    made[:] = 0
    attend_row(query, moving.cache, begin, places, seen, made)
    return made


@compiled(**SUMS)
def _rectify(row: Array) -> None:
    """Leave what is positive."""
    for j in range(len(row)):
        row[j] = relu(row[j])


@compiled(**SUMS)
def _add(row: Array, total: Array) -> None:
    """Add a row to another."""
    for j in range(len(row)):
        total[j] += row[j]


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
