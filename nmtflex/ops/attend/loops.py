"""The loops of windowed attention on the CPU, compiled by numba; ``cpu`` calls them.

Legend as in ``arrays``.

Each hypothesis is computed by one thread and in the same order, and so is each source position of
the gradients of keys and values: results do not depend on the number of threads or on the rest of a
batch.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from nmtflex.ops.arrays import Array, Arriving, Inputs, Leaving, Steps, Whole
from nmtflex.ops.compiled import EXACT, SUMS, compiled, entry
from nmtflex.ops.elementary import exp, tanh

TILE = 16  # positions that all hypotheses of a sentence read before the next ones, to stay in L2


@entry(parallel=True)
def forward(
    inputs: Inputs,
    shares: Whole,
    plain: Array,
    weights: Array,
    context: Array,
    focus: Array,
    log_sum: Array,
) -> None:
    """Score, weigh and sum, with the hypotheses split among threads.

    Args:
        inputs: What is attended.
        shares: Where the hypotheses of each thread begin and end.
        plain: [N, W], becomes the softmax.
        weights: [N, W], becomes the weights after the damping; ``plain`` itself without.
        context: [N, H], becomes the weighted sum of the values.
        focus: [N], becomes the weighted sum of the positions.
        log_sum: [N], becomes the logarithm of the softmax's sum.
    """
    for share in prange(shares.shape[0] - 1):
        first = shares[share]
        while first < shares[share + 1]:
            last = first + 1
            while last < shares[share + 1] and inputs.rows[last] == inputs.rows[first]:
                last += 1
            _attend(inputs, first, last, plain, weights, context, focus, log_sum)
            first = last


@compiled(**SUMS)
def _attend(
    inputs: Inputs,
    first: int,
    last: int,
    plain: Array,
    weights: Array,
    context: Array,
    focus: Array,
    log_sum: Array,
) -> None:
    """Attend once for each of the hypotheses ``first <= n < last``, which are of one sentence."""
    start, stop = inputs.start, inputs.stop
    keys, values = inputs.keys[inputs.rows[first]], inputs.values[inputs.rows[first]]
    low = start[first:last].min() // TILE * TILE
    high = stop[first:last].max()
    for tile in range(low, high, TILE):
        for n in range(first, last):
            begin, end = max(tile, start[n]), min(tile + TILE, stop[n])
            if begin < end:
                scores = plain[n, begin - start[n] : end - start[n]]
                score(inputs.query[n], inputs.v, keys[begin:end], scores)
    for n in range(first, last):
        width = stop[n] - start[n]
        scores = plain[n, :width]
        if inputs.gate.shape[0]:
            punish(scores, start[n], inputs.gate[n], inputs.focus[n], inputs.penalty_spread)
        log_sum[n] = softmax(scores)
        if inputs.centre.shape[0]:
            damp(scores, start[n], inputs.centre[n], inputs.damping_spread, weights[n])
        focus[n] = mean_position(weights[n, :width], start[n])
        context[n] = 0
    for tile in range(low, high, TILE):
        for n in range(first, last):
            begin, end = max(tile, start[n]), min(tile + TILE, stop[n])
            if begin < end:
                part = weights[n, begin - start[n] : end - start[n]]
                add_rows(part, values[begin:end], context[n])


@compiled(**SUMS)
def score(query: Array, v: Array, keys: Array, scores: Array) -> None:
    """Score a query [A] against keys [P, A]: additive where there is v [A], else a dot product."""
    for i in range(scores.shape[0]):
        key = keys[i]
        score = query.dtype.type(0)
        if v.shape[0]:
            score = additive(query, v, key)
        else:
            for a in range(query.shape[0]):
                score += query[a] * key[a]
        scores[i] = score


@compiled(**SUMS)
def additive(query: Array, v: Array, key: Array) -> np.floating:
    """Return the additive score of a query against one key, of which A units count."""
    total = query.dtype.type(0)
    for a in range(v.shape[0]):
        total += v[a] * tanh(query[a] + key[a])
    return total


@compiled(**EXACT)
def _away(position: int, centre: float) -> float:
    """Return position - centre in the format of ``centre``."""
    return type(centre)(position) - centre


@compiled(**EXACT)
def punish(scores: Array, start: int, gate: float, focus: float, spread: float) -> None:
    """Take the penalty off the scores of the positions from ``start`` on."""
    for i in range(scores.shape[0]):
        scores[i] -= gate * _away(start + i, focus) ** 2 / type(focus)(spread)


@compiled(**EXACT)
def damp(plain: Array, start: int, centre: float, spread: float, weights: Array) -> None:
    """Multiply the softmax at the positions from ``start`` on by the Gaussian."""
    for i in range(plain.shape[0]):
        weights[i] = plain[i] * exp(-(_away(start + i, centre) ** 2) / type(centre)(spread))


@compiled(**SUMS)
def softmax(scores: Array) -> np.floating:
    """Turn scores into their softmax; return the logarithm of the sum of their exponentials."""
    greatest = scores[0]
    for i in range(scores.shape[0]):
        greatest = max(greatest, scores[i])
    total = scores.dtype.type(0)
    for i in range(scores.shape[0]):
        scores[i] = exp(scores[i] - greatest)
        total += scores[i]
    for i in range(scores.shape[0]):
        scores[i] /= total
    return greatest + np.log(total)


@compiled(**SUMS)
def mean_position(weights: Array, start: int) -> float:
    """Return the sum of weights times positions; in float64, as positions may be thousands."""
    total = 0.0
    for i in range(weights.shape[0]):
        total += np.float64(weights[i]) * (start + i)
    return total


@compiled(**SUMS)
def add_rows(weights: Array, rows: Array, total: Array) -> None:
    """Add weights [P] times rows [P, D] to a total [D], four rows at a time."""
    i = 0
    while i + 4 <= weights.shape[0]:
        w0, w1, w2, w3 = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        row0, row1, row2, row3 = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        for d in range(total.shape[0]):
            total[d] += w0 * row0[d] + w1 * row1[d] + w2 * row2[d] + w3 * row3[d]
        i += 4
    while i < weights.shape[0]:
        add_row(weights[i], rows[i], total)
        i += 1


@entry(parallel=True)
def backward_queries(
    inputs: Inputs, shares: Whole, plain: Array, arriving: Arriving, leaving: Leaving
) -> None:
    """Compute the gradients of each hypothesis's own inputs, split among threads.

    Args:
        inputs: As in ``forward``.
        shares: As in ``forward``.
        plain: [N, W] from ``forward``.
        arriving: Gradients of the results.
        leaving: Becomes the gradients of scores and inputs.
    """
    for share in prange(shares.shape[0] - 1):
        for n in range(shares[share], shares[share + 1]):
            _backward(inputs, n, plain, arriving, leaving)


@compiled(**SUMS)
def _backward(inputs: Inputs, n: int, plain: Array, arriving: Arriving, leaving: Leaving) -> None:
    """The backward pass of ``_attend`` for one hypothesis."""
    start, stop = inputs.start[n], inputs.stop[n]
    keys = inputs.keys[inputs.rows[n], start:stop]
    values = inputs.values[inputs.rows[n], start:stop]
    weights, grads = plain[n, : stop - start], leaving.scores[n, : stop - start]
    for i in range(stop - start):
        grads[i] = dot(arriving.context[n], values[i])
        grads[i] += arriving.focus[n] * type(arriving.focus[n])(start + i)
    if inputs.centre.shape[0]:
        leaving.centre[n] = _backward_damp(
            weights, start, inputs.centre[n], inputs.damping_spread, grads
        )
    backward_softmax(weights, grads, arriving.log_sum[n])
    if inputs.gate.shape[0]:
        leaving.gate[n], leaving.focus[n] = backward_punish(
            grads, start, inputs.gate[n], inputs.focus[n], inputs.penalty_spread
        )
    leaving.query[n] = 0
    if inputs.v.shape[0]:
        leaving.v[n] = 0
        _backward_score(inputs.query[n], inputs.v, keys, grads, leaving.query[n], leaving.v[n])
    else:
        add_rows(grads, keys, leaving.query[n])


@compiled(**SUMS)
def dot(left: Array, right: Array) -> np.floating:
    """Return the dot product of two vectors."""
    total = left.dtype.type(0)
    for d in range(left.shape[0]):
        total += left[d] * right[d]
    return total


@compiled(**EXACT)
def _backward_damp(
    plain: Array, start: int, centre: float, spread: float, grads: Array
) -> np.floating:
    """Turn the gradient of damped weights into that of ``plain``; return that of the centre."""
    grad_centre = grads.dtype.type(0)
    for i in range(plain.shape[0]):
        away = _away(start + i, centre)
        grads[i] *= exp(-(away**2) / type(centre)(spread))
        grad_centre += grads[i] * plain[i] * away
    return grad_centre * type(centre)(2 / spread)


@compiled(**SUMS)
def backward_softmax(weights: Array, grads: Array, of_log_sum: float) -> None:
    """Turn the gradients of the weights and of the softmax's log_sum into that of the scores."""
    mean = dot(weights, grads) - of_log_sum
    for i in range(weights.shape[0]):
        grads[i] = weights[i] * (grads[i] - mean)


@compiled(**EXACT)
def backward_punish(
    grads: Array, start: int, gate: float, focus: float, spread: float
) -> tuple[np.floating, np.floating]:
    """Return the gradients of gate and focus of a penalty, from those of the scores."""
    grad_gate, grad_focus = grads.dtype.type(0), grads.dtype.type(0)
    for i in range(grads.shape[0]):
        away = _away(start + i, focus)
        grad_gate -= grads[i] * away**2 / type(focus)(spread)
        grad_focus += grads[i] * away
    return grad_gate, grad_focus * gate * type(focus)(2 / spread)


@compiled(**SUMS)
def _backward_score(
    query: Array, v: Array, keys: Array, grads: Array, grad_query: Array, grad_v: Array
) -> None:
    """Add the gradients of the additive score to ``grad_query`` and ``grad_v``, [A] each."""
    one = query.dtype.type(1)
    for i in range(grads.shape[0]):
        key, grad = keys[i], grads[i]
        if grad == 0:  # after a sentence's end, and far from the focus
            continue
        for a in range(v.shape[0]):
            t = tanh(query[a] + key[a])
            grad_v[a] += grad * t
            grad_query[a] += grad * (one - t * t)
    for a in range(v.shape[0]):
        grad_query[a] *= v[a]


@entry(parallel=True)
def backward_memory(steps: Steps, keys: Array, grad_keys: Array, grad_values: Array) -> None:
    """Add up the gradients of keys and values over all hypotheses that read them.

    Args:
        steps: Hypotheses of one step of a decoder, or of all its steps.
        keys: [B, S, A].
        grad_keys: [B, S, A], added to.
        grad_values: [B, S, H], added to.
    """
    num_sentences, length = keys.shape[0], keys.shape[1]
    for position in prange(num_sentences * length):
        _backward_position(
            steps, keys, position // length, position % length, grad_keys, grad_values
        )


@compiled(**SUMS)
def _backward_position(
    steps: Steps, keys: Array, row: int, s: int, grad_keys: Array, grad_values: Array
) -> None:
    """Add up the gradients of one position of one sentence, over its hypotheses in order."""
    for n in steps.order[steps.ends[row] : steps.ends[row + 1]]:
        if not steps.start[n] <= s < steps.stop[n]:
            continue
        i = steps.place[n] + s - steps.start[n]
        add_row(steps.weights[i], steps.context[n], grad_values[row, s])
        grad = steps.scores[i]
        if grad == 0:
            continue
        if steps.v.shape[0]:
            _backward_key(steps.query[n], steps.v, keys[row, s], grad, grad_keys[row, s])
        else:
            add_row(grad, steps.query[n], grad_keys[row, s])


@compiled(**SUMS)
def add_row(weight: float, row: Array, total: Array) -> None:
    """Add a weight times a vector to another."""
    for d in range(total.shape[0]):
        total[d] += weight * row[d]


@compiled(**SUMS)
def _backward_key(query: Array, v: Array, key: Array, grad: float, total: Array) -> None:
    """Add the gradient of a key [A] in the additive score."""
    one = query.dtype.type(1)
    for a in range(v.shape[0]):
        t = tanh(query[a] + key[a])
        total[a] += grad * v[a] * (one - t * t)
