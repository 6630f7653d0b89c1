"""The remainder of a window of flexible attention; see ``nmtflex.attention.remainder``.

Legend: S positions of a sentence, A units of a head. ``sums`` [S + 2, 2 A] are the keys and values
of a sentence, added up: those of the first s positions, less their means, and last these means.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmtflex.ops.arrays import Array
from nmtflex.ops.attend.windows import edges
from nmtflex.ops.compiled import EXACT, SUMS, compiled
from nmtflex.ops.linear.looking import REACH, Focus
from nmtflex.ops.recurrent.loops import sigmoid


class Rest(NamedTuple):
    """The positions that a window leaves out: those up to its start, and those from its stop on."""

    first: np.int64
    start: np.int64
    stop: np.int64
    end: np.int64
    share: np.floating  # of all weight; 0 if there are none


@compiled(**EXACT)
def nothing_left(query: Array) -> Rest:
    """Return no positions."""
    nothing = np.int64(0)
    return Rest(nothing, nothing, nothing, nothing, query.dtype.type(0))


@compiled(**SUMS)
def weigh_rest(
    query: Array,
    sums: Array,
    focus: Focus,
    length: int,
    limits: tuple[np.floating, np.floating],
    log_sum: float,
) -> Rest:
    """Weigh the positions out of a window whose penalty is below tau + 2.

    Args:
        query: [A], scaled.
        sums: Of the sentence.
        focus: With the window.
        length: Of the sentence.
        limits: tau and 2 sigma^2.
        log_sum: Logarithm of the sum within the window.
    """
    (tau, spread), (start, stop, gate, centre) = limits, focus
    first, end = edges(tau + type(tau)(REACH), gate, centre, spread, length)
    left = Rest(min(first, start), start, stop, max(end, stop), query.dtype.type(0))
    if not _number(left):
        return left
    count, score = type(centre)(_number(left)), query.dtype.type(0)
    for a in range(len(query)):
        score += query[a] * _mean(sums, left, a)
    squares = _squares(left.first, start, centre) + _squares(stop, left.end, centre)
    share = sigmoid(score + np.log(count) - gate * squares / count / spread - log_sum)
    return Rest(left.first, start, stop, left.end, share)


@compiled(**SUMS)
def join(left: Rest, sums: Array, context: Array) -> None:
    """Put the values of what is left out into the context [A] of a window."""
    for a in range(len(context)):
        context[a] += left.share * (_mean(sums, left, len(context) + a) - context[a])


@compiled(**SUMS)
def spread_out(left: Rest, weights: Array) -> None:
    """Spread the share evenly over weights [S] of what is left out."""
    weights *= type(left.share)(1) - left.share
    each = left.share / type(left.share)(_number(left))
    weights[left.first : left.start] = each
    weights[left.stop : left.end] = each


@compiled(**EXACT)
def _number(left: Rest) -> np.int64:
    return left.start - left.first + (left.end - left.stop)


@compiled(**SUMS)
def _mean(sums: Array, left: Rest, a: int) -> np.floating:
    """Return the mean of one unit over what is left out."""
    total = sums[left.start, a] - sums[left.first, a] + (sums[left.end, a] - sums[left.stop, a])
    return sums[len(sums) - 1, a] + total / type(total)(_number(left))


@compiled(**EXACT)
def _squares(begin: int, end: int, focus: float) -> float:
    """Return the sum of (s - focus)^2 over some positions, without cancellation."""
    kind = type(focus)
    count, middle = kind(end - begin), kind(begin + end - 1) / kind(2) - focus
    return count * (middle * middle + (count * count - kind(1)) / kind(12))
