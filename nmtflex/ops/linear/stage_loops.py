"""Residual sublayers stage by stage, in 8 bits or in float32, compiled by numba.

A program is a list of stages, which one call runs for all rows. A row's numbers are the same to the
last bit whatever rows are beside it.

Legend: M rows, D units of a row, P stages, T steps so far, R rows of a cache, and as in
``attend_stages``. ``shares`` says where the rows of each thread begin and end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.cache.loops import attend_row
from nmtflex.ops.compiled import SUMS, compiled, entry
from nmtflex.ops.linear.attend_stages import attend
from nmtflex.ops.linear.int8_loops import Int8, normalize_row, relu
from nmtflex.ops.linear.looking import Network, Room, Seen, Source
from nmtflex.ops.linear.product_loops import COLUMNS, ROWS, enter, multiply, space
from nmtflex.ops.recurrent.ssru_loops import step

# Kinds of stages, those whose rows go into a product, and the columns of a program.
PRODUCT, ENTER, SELF, ATTEND, RELU, SSRU, ADD, KEEP, TAKE, SHOW, JOIN, LEAVE = range(12)
LEAVING = (ENTER, SELF, ATTEND, RELU, TAKE)
KIND, NORM, SCALES, BIAS, WEIGHT, OUT, IN, PLACE, HOW, NETWORK, UNITS = range(11)
NONE = -1  # no norm, or no bias


class Fixed(NamedTuple):
    """What does not change from call to call; a stage's columns say where its own part begins."""

    program: Whole  # [P, 11]
    weights: Int8 | Array  # of all products, flat
    numbers: Array  # scales of columns, biases, norms and networks, flat
    epsilon: float  # of the norms
    widest: int  # most that comes into a product, or goes out of one
    units: int  # most of a network


class Rows(NamedTuple):
    """What a call makes of rows."""

    x: Array  # [M, D]
    taken: Array  # [M, D], rows of another operation
    kept: Array  # [M, O], become the rows that another operation is to read


class Moving(NamedTuple):
    """What rows of a step read of the steps before, and leave for the next."""

    before: Array  # [M, L, D], states of L SSRUs
    after: Array  # [M, L, D], become the new states
    cache: Array  # [R, L 2 D], keys and values of all steps, of L layers of self-attention
    places: Whole  # [M, T], the row of each step in it, this step's last


@entry(parallel=True)
def run_stages(
    fixed: Fixed, rows: Rows, moving: Moving, source: Source, seen: Seen, shares: Whole
) -> None:
    """Run all stages of a program for M rows of a step."""
    for share in prange(shares.shape[0] - 1):
        low, high = shares[share], shares[share + 1]
        run_share(fixed, range(len(fixed.program)), rows, moving, source, seen, low, high)


@compiled(**SUMS)
def run_share(
    fixed: Fixed,
    stages: range,
    rows: Rows,
    moving: Moving | None,
    source: Source | None,
    seen: Seen | None,
    begin: int,
    end: int,
) -> None:
    """Run some stages for the rows of a thread.

    Where rows belong to no step, as in an encoder, pass None for all that a step has: no code is
    compiled for it, which halves the time to compile.
    """
    entering = space(fixed.widest, fixed.weights, rows.x)
    made = np.empty((ROWS, fixed.widest + COLUMNS), rows.x.dtype)
    room = _make_room(fixed, moving, source)
    for low in range(begin, end, ROWS):
        high = min(low + ROWS, end)
        for p in stages:
            stage = fixed.program[p]
            if stage[KIND] == PRODUCT:
                scales = _part(fixed, stage[SCALES], stage[OUT])
                at, width = stage[WEIGHT], stage[IN]
                multiply(fixed.weights, at, scales, entering, width, made[: high - low])
            else:
                for m in range(low, high):
                    row = made[m - low, : stage[OUT]]
                    _begin(fixed, stage, rows, m, row)
                    if stage[KIND] == ATTEND:
                        _attend(fixed, stage, source, seen, m, row, room)
                    row = _run(fixed, stage, rows, moving, m, row, room)
                    if stage[KIND] in LEAVING:
                        enter(row, entering, m - low)


@compiled(**SUMS)
def _make_room(fixed: Fixed, moving: Moving | None, source: Source | None) -> Room | None:
    """Return room for a row of a step."""
    if moving is None or source is None:
        return None
    like = moving.before.dtype
    past = np.empty((source.heads, moving.places.shape[1]), like)
    return Room(np.empty(source.keys.shape[2], like), np.empty(fixed.units, like), past)


@compiled(**SUMS)
def _part(fixed: Fixed, begin: int, size: int) -> Array:
    """Return some of the numbers that do not change."""
    return fixed.numbers[begin : begin + size]


@compiled(**SUMS)
def _run(
    fixed: Fixed,
    stage: Whole,
    rows: Rows,
    moving: Moving | None,
    m: int,
    made: Array,
    room: Room | None,
) -> Array:
    """Run one stage for one row; return what goes into the next product.

    ``made`` is what a product has made.
    """
    kind, x = stage[KIND], rows.x[m]
    if moving is not None and room is not None:
        if kind == SSRU:
            made = _mix(stage[PLACE], moving, m, made)
        elif kind == SELF:
            made = _look_back(stage[PLACE], moving, m, made, room.past)
    if kind == RELU:
        _rectify(made)
    if kind in (SSRU, ADD, JOIN):
        _add(made, x)
    if kind in (SSRU, ADD, JOIN, LEAVE):
        made = x
    if stage[NORM] != NONE:
        normalize_row(made, _part(fixed, stage[NORM], 2 * len(x)), fixed.epsilon)
    if kind in (KEEP, SHOW):
        rows.kept[m] = made
    return made


@compiled(**SUMS)
def _begin(fixed: Fixed, stage: Whole, rows: Rows, m: int, made: Array) -> None:
    """Read what a stage begins with."""
    if stage[KIND] in (ENTER, SHOW):
        made[:] = rows.x[m]
    elif stage[KIND] in (TAKE, JOIN):
        made[:] = rows.taken[m]
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
def _look_back(place: int, moving: Moving, m: int, made: Array, past: Array) -> Array:
    """Attend to the steps so far: query, key and value [3 D] become a context [D]."""
    places, size = moving.places[m], len(made) // 3
    begin = place * 2 * size
    moving.cache[places[-1], begin : begin + 2 * size] = made[size:]
    query, made = made[:size], made[size : 2 * size]
    made[:] = 0
    attend_row(query, moving.cache, begin, places, past, made)
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
def _attend(
    fixed: Fixed,
    stage: Whole,
    source: Source | None,
    seen: Seen | None,
    m: int,
    made: Array,
    room: Room | None,
) -> None:
    """Turn a row's queries into contexts."""
    if source is None or seen is None or room is None:
        return
    units, begin = stage[UNITS], stage[NETWORK]
    size = len(made) // source.heads
    inner, v = _part(fixed, begin, units), _part(fixed, begin + units, units)
    outer = _part(fixed, begin + 2 * units, 1)
    weight = _part(fixed, begin + 2 * units + 1, size * units).reshape(size, units)
    network = Network(weight, inner, v, outer)
    own = Room(room.scores, room.hidden[:units], room.past)
    attend(stage[HOW], stage[PLACE], network, source, seen, m, made, own)
