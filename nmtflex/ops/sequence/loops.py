"""The loops of scores, of the focus's walk and of contexts on the CPU, compiled by numba.

Legend as in ``nmtflex.ops.sequence``. A thread computes whole sentences, or whole queries, each in
the same order: results do not depend on the number of threads or on the rest of a batch. ``shares``
says where the sentences or queries of each thread begin and end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.attend.loops import (
    add_rows,
    backward_punish,
    backward_softmax,
    mean_position,
    punish,
    score,
    softmax,
)
from nmtflex.ops.attend.windows import edges
from nmtflex.ops.compiled import SUMS, compiled, entry
from nmtflex.ops.elementary import tanh


class Scored(NamedTuple):
    """The inputs of the scores."""

    query: Array  # [B, T, A]
    keys: Array  # [B, S, A]
    v: Array  # [A]; or of length 0, for the dot product
    lengths: Whole  # [B]


class Walked(NamedTuple):
    """The inputs and results of a walk."""

    gate: Array  # [B, T]
    start: Array  # [B], focus before the first step
    lengths: Whole  # [B]
    weights: Array  # [B, T, S]
    focus: Array  # [B, T]
    spread: float  # 2 sigma^2


@entry(parallel=True)
def scores(scored: Scored, made: Array, shares: Whole) -> None:
    """Score each of B T queries against the keys of its sentence.

    Args:
        scored: Query, keys, v and lengths.
        made: [B, T, S] of zeros, becomes the scores.
        shares: Of the queries.
    """
    steps = scored.query.shape[1]
    for share in prange(shares.shape[0] - 1):
        for n in range(shares[share], shares[share + 1]):
            row, t = n // steps, n % steps
            length = scored.lengths[row]
            keys = scored.keys[row, :length]
            score(scored.query[row, t], scored.v, keys, made[row, t, :length])


@entry(parallel=True)
def backward_scores(
    scored: Scored, grads: Array, of_query: Array, of_keys: Array, of_v: Array, shares: Whole
) -> None:
    """Compute the gradients of additive scores.

    Args:
        scored: As in ``scores``.
        grads: [B, T, S], of the scores.
        of_query: [B, T, A] of zeros, becomes the gradient.
        of_keys: [B, S, A] of zeros, becomes the gradient.
        of_v: [B, A] of zeros, becomes a summand of each sentence.
        shares: Of the sentences.
    """
    for share in prange(shares.shape[0] - 1):
        for row in range(shares[share], shares[share + 1]):
            for s in range(scored.lengths[row]):
                for t in range(scored.query.shape[1]):
                    if grads[row, t, s] != 0:  # as it is far from the focus
                        _backward_score(
                            scored.query[row, t],
                            scored.keys[row, s],
                            grads[row, t, s],
                            of_query[row, t],
                            of_keys[row, s],
                            of_v[row],
                        )
            of_query[row] *= scored.v
            of_keys[row] *= scored.v


@compiled(**SUMS)
def _backward_score(
    query: Array, key: Array, grad: float, of_query: Array, of_key: Array, of_v: Array
) -> None:
    """Add the gradients of one score to those of a query, a key (both less a factor v) and v."""
    one = query.dtype.type(1)
    for a in range(of_v.shape[0]):
        t = tanh(query[a] + key[a])
        of_v[a] += grad * t
        slope = grad * (one - t * t)
        of_query[a] += slope
        of_key[a] += slope


@entry(parallel=True)
def sums(weights: Array, memory: Array, lengths: Whole, made: Array, shares: Whole) -> None:
    """Sum the rows of a sentence with the weights of each of its B T queries.

    Args:
        weights: [B, T, S].
        memory: [B, S, D].
        lengths: [B].
        made: [B, T, D] of zeros, becomes the sums.
        shares: Of the queries.
    """
    steps = weights.shape[1]
    for share in prange(shares.shape[0] - 1):
        for n in range(shares[share], shares[share + 1]):
            row, t = n // steps, n % steps
            length = lengths[row]
            add_rows(weights[row, t, :length], memory[row, :length], made[row, t])


@entry(parallel=True)
def sums_over_steps(
    weights: Array, queries: Array, lengths: Whole, made: Array, shares: Whole
) -> None:
    """Sum the queries of a sentence with the weights of each of its positions.

    Args:
        weights: [B, T, S].
        queries: [B, T, D].
        lengths: [B].
        made: [B, S, D] of zeros, becomes the sums.
        shares: Of the sentences.
    """
    for share in prange(shares.shape[0] - 1):
        for row in range(shares[share], shares[share + 1]):
            for s in range(lengths[row]):
                add_rows(weights[row, :, s], queries[row], made[row, s])


@entry(parallel=True)
def walk(scores: Array, walked: Walked, tau: float, shares: Whole) -> None:
    """Walk through the steps of each sentence.

    Args:
        scores: [B, T, S].
        walked: Its weights and its focus are filled.
        tau: Threshold of the penalty, in the format of the scores; inf for none.
        shares: Of the sentences.
    """
    for share in prange(shares.shape[0] - 1):
        for row in range(shares[share], shares[share + 1]):
            _walk(scores, walked, row, tau)


@compiled(**SUMS)
def _walk(scores: Array, walked: Walked, row: int, tau: float) -> None:
    p = walked.start[row]
    for t in range(scores.shape[1]):
        gate = walked.gate[row, t]
        first, last = 0, walked.lengths[row]
        if tau < np.inf:
            first, last = edges(tau, gate, p, scores.dtype.type(walked.spread), last)
        weights = walked.weights[row, t]
        weights[:first] = 0
        weights[last:] = 0
        weights = weights[first:last]
        weights[:] = scores[row, t, first:last]
        punish(weights, first, gate, p, walked.spread)
        softmax(weights)
        walked.focus[row, t] = mean_position(weights, first)
        p = walked.focus[row, t]


@entry(parallel=True)
def backward_walk(
    walked: Walked,
    grad_weights: Array,
    grad_focus: Array,
    of_scores: Array,
    of_gate: Array,
    of_start: Array,
    shares: Whole,
) -> None:
    """Walk through the steps of each sentence backwards.

    Args:
        walked: As ``walk`` left it.
        grad_weights: [B, T, S].
        grad_focus: [B, T].
        of_scores: [B, T, S], becomes the gradient of the scores.
        of_gate: [B, T], becomes that of the gates.
        of_start: [B], becomes that of the focus before the first step.
        shares: Of the sentences.
    """
    for share in prange(shares.shape[0] - 1):
        for row in range(shares[share], shares[share + 1]):
            carried = of_start.dtype.type(0)
            for step in range(grad_weights.shape[1]):
                t = grad_weights.shape[1] - 1 - step
                to_focus = grad_focus[row, t] + carried
                of_gate[row, t], carried = _backward_step(
                    walked, row, t, grad_weights[row, t], to_focus, of_scores[row, t]
                )
            of_start[row] = carried


@compiled(**SUMS)
def _backward_step(
    walked: Walked, row: int, t: int, grad_weights: Array, grad_focus: float, of_scores: Array
) -> tuple[np.floating, np.floating]:
    """Fill the gradient of a step's scores; return those of its gate and the focus before it."""
    length = walked.lengths[row]
    weights, grads = walked.weights[row, t, :length], of_scores[:length]
    zero = grads.dtype.type(0)
    for s in range(length):
        grad = grad_weights[s] + grad_focus * type(grad_focus)(s)
        grads[s] = zero if weights[s] == 0 else grad  # outside of a window anything may arrive
    of_scores[length:] = 0
    backward_softmax(weights, grads, zero)
    p = walked.focus[row, t - 1] if t > 0 else walked.start[row]
    return backward_punish(grads, 0, walked.gate[row, t], p, walked.spread)
