"""Several steps of a search with a model whose layers are one call, compiled by numba.

It does what ``nmtflex.decoding.search.grow`` does step by step, without Python between the steps.

Legend: N hypotheses, M the most that a step may have, B sentences, C steps of a call, T steps
before it, D units, L SSRUs, K attending sublayers, h heads, V words, R rows of a record.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.beam import SLACK, Rules, loops, repeat_loops
from nmtflex.ops.compiled import ROUNDED, SUMS, compiled, entry, inside
from nmtflex.ops.linear import stage_loops
from nmtflex.ops.linear.looking import Seen, Source
from nmtflex.ops.linear.stage_loops import Fixed, Moving, Rows
from nmtflex.ops.vocabulary import output_loops
from nmtflex.ops.vocabulary.output_loops import Layer

run_stages, extend = inside(stage_loops.run_stages), inside(loops.extend)
best_of_products = inside(output_loops.best_of_products)
repeating, leave_out = inside(repeat_loops.repeating), inside(repeat_loops.leave_out)


class Words(NamedTuple):
    """What a step reads of words and of its number."""

    embedded: Array  # [V, D]
    scale: np.float32  # of the embeddings
    feedback: Array  # [V, K F], for attention
    positions: Array  # [C, D]
    summaries: Array  # [B, D], or [0, D] for none


class Machine(NamedTuple):
    """A model, and a batch that it translates."""

    layers: Fixed
    source: Source
    words: Words
    output: Layer


class State(NamedTuple):
    """What goes from step to step; the first N rows are of hypotheses."""

    mixed: Array  # [M, L, D], of SSRUs
    focus: Array  # [M, K, h], of attention
    cache: Array  # rows of self-attention, C M of them free
    free: int  # the first free one
    places: Whole  # [M, T + C], the row of each step, if there is self-attention
    said: Whole  # [M, T + C], the words, if none may be repeated


class Record(NamedTuple):
    """Hypotheses of each step, one step after another; see ``nmtflex.ops.beam.Beam``."""

    rows: Whole  # [R]
    parents: Whole  # [R]
    tokens: Whole  # [R]
    totals: Array  # [R]
    ends: Whole  # [C + 1], where each step's begin, and where the last one's end


class Work(NamedTuple):
    """How work is shared."""

    threads: int  # the most that may be used
    grain: int  # numbers that a thread should have to go through


@entry()
def grow(
    machine: Machine,
    rules: Rules,
    state: State,
    live: Record,
    ended: Record,
    first: int,
    work: Work,
) -> tuple[int, float]:
    """Take steps until no hypothesis is left, or no room.

    Args:
        machine: With the words for these steps.
        rules: Of the search.
        state: At the beginning; becomes the one at the end.
        live: The first ``ends[0]`` rows are the hypotheses that go on; becomes those of all steps.
        ended: Becomes the hypotheses that end.
        first: Words that the hypotheses have.
        work: How it is shared.

    Returns:
        The steps that were taken, and the greatest log-probability of the last one, which says
        whether the model is sound.
    """
    begin, free = 0, state.free
    steps = machine.words.positions.shape[0]
    for at in range(steps):
        stop = live.ends[at]
        if begin == stop:
            return at, 0.0
        rows, tokens, totals = (
            live.rows[begin:stop],
            live.tokens[begin:stop],
            live.totals[begin:stop],
        )
        x, mixed, focus = _advance(machine, state, rows, tokens, at, first + at, free, work)
        free += stop - begin
        barred, counts = repeating(state.said[: stop - begin, : first + at], rules.no_repeat)
        more = counts.max()
        values, found = _best_words(x, machine.output, rules, rows, first + at, more, work)
        worst = _greatest(values)
        if not worst < np.inf:
            return at, worst
        if more:
            leave_out(values, found, barred, counts)
        room = values.size
        best = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
        count = extend(rows, totals, values, found, rules.slots, best[0], best[1], best[2])
        _sort_out(rows, best, count, rules, live, ended, at, first + at + 1)
        after = slice(stop, live.ends[at + 1])
        _follow(state, live.parents[after], live.tokens[after], mixed, focus, first + at + 1)
        begin = stop
    return steps, 0.0


@compiled(**SUMS)
def _shares(count: int, numbers: int, work: Work) -> Whole:
    """Return where the rows of each thread begin and end; see ``nmtflex.ops.threads.run_rows``."""
    threads = max(1, min(work.threads, count, count * numbers // work.grain))
    return np.arange(threads + 1) * count // threads


@compiled(**SUMS)
def _advance(
    machine: Machine,
    state: State,
    rows: Whole,
    tokens: Whole,
    at: int,
    past: int,
    free: int,
    work: Work,
) -> tuple[Array, Array, Array]:
    """Run the layers; return their output [N, D], and the states [N, L, D] and [N, K, h]."""
    fixed, whole, words, _ = machine
    count, kind = len(tokens), words.embedded.dtype
    x = np.empty((count, words.embedded.shape[1]), kind)
    feedback = np.empty((count, words.feedback.shape[1]), kind)
    for n in range(count):
        for d in range(x.shape[1]):
            x[n, d] = words.embedded[tokens[n], d] * words.scale + words.positions[at, d]
        if len(words.summaries):
            for d in range(x.shape[1]):
                x[n, d] += words.summaries[rows[n], d]
        feedback[n] = words.feedback[tokens[n]]
    looking_back = len(state.cache) > 0
    places = np.empty((count, past + 1 if looking_back else 0), np.int64)
    if looking_back:
        state.places[:count, past] = np.arange(free, free + count)
        places[:] = state.places[:count, : past + 1]
    mixed, focus = state.mixed[:count], state.focus[:count]
    after = np.empty(mixed.shape, kind), np.empty(focus.shape, kind)
    layers, heads = focus.shape[1], focus.shape[2]
    windows = np.empty((count, layers, heads, 2), np.int64)
    weights = np.empty((layers, heads, count, 0), kind)
    seen = Seen(feedback, focus, after[1], np.empty(focus.shape, kind), windows, weights)
    outside = np.empty((0, 0), kind)
    moving = Moving(mixed, after[0], state.cache, places)
    source = Source(
        whole.keys,
        whole.values,
        whole.sums,
        whole.lengths,
        rows,
        whole.heads,
        whole.scale,
        whole.reach,
        whole.spread,
    )
    shares = _shares(count, len(fixed.weights), work)
    run_stages(fixed, Rows(x, outside, outside), moving, source, seen, shares)
    return x, after[0], after[1]


@compiled(**SUMS)
def _best_words(
    x: Array, layer: Layer, rules: Rules, rows: Whole, past: int, more: int, work: Work
) -> tuple[Array, Whole]:
    """Return the most probable words of each hypothesis: as many as slots, and some more."""
    count, width = len(x), 0
    only = np.empty(count, np.int64)
    for n in range(count):
        only[n] = rules.end if rules.most[rows[n]] == past else -1
        width = max(width, rules.slots[rows[n]])
    width = min(width + more, len(layer.bias))
    values, words = np.empty((count, width), x.dtype), np.empty((count, width), np.int64)
    shares = _shares(count, len(layer.weights), work)
    best_of_products(x, layer, rules.never, only, values, words, shares)
    return values, words


@compiled(**ROUNDED)
def _greatest(values: Array) -> float:
    """Return the greatest first number of the rows [N, K], NaN if one is."""
    greatest = -np.inf
    for n in range(len(values)):
        if not values[n, 0] <= greatest:
            greatest = np.float64(values[n, 0])
        if np.isnan(greatest):
            break
    return greatest


@compiled(**ROUNDED)
def _sort_out(
    rows: Whole,
    best: tuple[Whole, Whole, Array],
    count: int,
    rules: Rules,
    live: Record,
    ended: Record,
    at: int,
    length: int,
) -> None:
    """Record the continuations, which are sorted by sentence: those that end, those that go on."""
    parents, chosen, sums = best
    stop, end = live.ends[at], ended.ends[at]
    begin = 0
    while begin < count:
        row = rows[parents[begin]]
        after = begin
        while after < count and rows[parents[after]] == row:
            if chosen[after] == rules.end:
                _record(ended, end, row, parents[after], chosen[after], sums[after])
                end += 1
                rules.slots[row] -= 1
                _raise(rules.best[row], sums[after] / np.float64(length) ** rules.length_penalty)
            after += 1
        if _is_open(chosen[begin:after], sums[begin:after], row, rules):
            for i in range(begin, after):
                if chosen[i] != rules.end:
                    _record(live, stop, row, parents[i], chosen[i], sums[i])
                    stop += 1
        begin = after
    live.ends[at + 1], ended.ends[at + 1] = stop, end


@compiled(**ROUNDED)
def _record(record: Record, place: int, row: int, parent: int, token: int, total: float) -> None:
    """Write a hypothesis down."""
    record.rows[place], record.parents[place] = row, parent
    record.tokens[place], record.totals[place] = token, total


@compiled(**ROUNDED)
def _raise(best: Array, score: float) -> None:
    """Take a score among the best, the worst first, if it is better than that."""
    if score > best[0]:
        place = 0
        while place + 1 < len(best) and best[place + 1] < score:
            best[place] = best[place + 1]
            place += 1
        best[place] = score


@compiled(**ROUNDED)
def _is_open(chosen: Whole, sums: Array, row: int, rules: Rules) -> bool:
    """Whether a continuation that goes on may become one of the wanted ones."""
    for i in range(len(chosen)):
        highest = SLACK * sums[i] / rules.longest[row]
        if chosen[i] != rules.end and highest >= rules.best[row, 0]:
            return True
    return False


@compiled(**SUMS)
def _follow(
    state: State, parents: Whole, tokens: Whole, mixed: Array, focus: Array, past: int
) -> None:
    """Give each hypothesis the state of the one that it continues."""
    for n in range(len(parents)):
        state.mixed[n] = mixed[parents[n]]
        state.focus[n] = focus[parents[n]]
    if len(state.cache):
        _follow_back(state.places[:, :past], parents)
    if state.said.shape[1]:
        _follow_back(state.said[:, : past - 1], parents)
        state.said[: len(tokens), past - 1] = tokens


@compiled(**SUMS)
def _follow_back(numbers: Whole, parents: Whole) -> None:
    """Give each hypothesis the numbers of the one that it continues."""
    before = numbers.copy()
    for n in range(len(parents)):
        numbers[n] = before[parents[n]]
