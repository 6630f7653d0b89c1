"""The loops over a vocabulary on the CPU, compiled by numba; ``cpu`` calls them.

A row of logits is read two or three times while it is in the cache, by one thread and in the same
order whatever other rows there are. Rows may be padded beyond V to make their product faster.
Legend: M rows, V words, K words that are asked for.
"""

from __future__ import annotations

import math

import numpy as np
from numba import prange

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.compiled import SUMS, compiled, entry
from nmtflex.ops.elementary import exp
from nmtflex.ops.halves import Bits, cut, widened

LANES = 16  # numbers in a vector
BLOCK = 4 * LANES  # words whose greatest logit is found before its place


@entry(parallel=True)
def cross_entropy(
    logits: Array,
    bias: Array,
    references: Whole,
    smoothing: float,
    gradient: bool,
    sums: Array,
    of_bias: Array,
    shares: Whole,
) -> None:
    """Compute the cross-entropy of each row, and turn its logits into their gradient.

    Args:
        logits: [M, V or more] without the bias; overwritten, by the gradient if wanted.
        bias: [V].
        references: [M].
        smoothing: Probability that is spread evenly over V.
        gradient: Whether the gradient is wanted.
        sums: [M, 2], becomes the smoothed and the plain cross-entropy.
        of_bias: [threads, V], to which each thread adds the gradients of its rows.
        shares: Where the rows of each thread begin and end.
    """
    for share in prange(shares.shape[0] - 1):
        lanes = np.empty(LANES, logits.dtype)
        for row in range(shares[share], shares[share + 1]):
            scores = logits[row][: bias.shape[0]]
            _score_row(scores, bias, references[row], smoothing, gradient, lanes, sums[row])
            if gradient:
                _add(scores, of_bias[share])


@entry(parallel=True)
def cross_entropy_bfloat16(
    logits: Bits,
    bias: Array,
    references: Whole,
    smoothing: float,
    gradient: bool,
    sums: Array,
    of_bias: Array,
    shares: Whole,
) -> None:
    """Do what ``cross_entropy`` does on the bits of bfloat16 logits, computing in bias's format.

    Unlike there, logits are kept if no gradient is wanted.
    """
    for share in prange(shares.shape[0] - 1):
        lanes, scores = np.empty(LANES, bias.dtype), np.empty(bias.shape[0], bias.dtype)
        for row in range(shares[share], shares[share + 1]):
            for j in range(bias.shape[0]):
                scores[j] = widened(logits[row, j])
            _score_row(scores, bias, references[row], smoothing, gradient, lanes, sums[row])
            if gradient:
                _add(scores, of_bias[share])
                for j in range(bias.shape[0]):
                    logits[row, j] = cut(scores[j])


@compiled(**SUMS)
def _score_row(
    scores: Array,
    bias: Array,
    reference: int,
    smoothing: float,
    gradient: bool,
    lanes: Array,
    sums: Array,
) -> None:
    """Compute the cross-entropy of a row, and turn its logits into their gradient."""
    for j in range(scores.shape[0]):
        scores[j] += bias[j]
    greatest = _greatest(scores, lanes)
    wanted = np.float64(scores[reference])
    mean = 0.0
    if smoothing:
        mean = np.float64(_sum(scores)) / scores.shape[0]
    total = scores.dtype.type(0)
    for j in range(scores.shape[0]):
        scores[j] = exp(scores[j] - greatest)
        total += scores[j]
    log_total = np.float64(greatest) + math.log(np.float64(total))
    sums[1] = log_total - wanted
    sums[0] = (1 - smoothing) * (log_total - wanted) + smoothing * (log_total - mean)
    if gradient:
        spread = scores.dtype.type(smoothing / scores.shape[0])
        scale = scores.dtype.type(1) / total
        for j in range(scores.shape[0]):
            scores[j] = scores[j] * scale - spread
        scores[reference] -= scores.dtype.type(1 - smoothing)


@compiled(**SUMS)
def _add(row: Array, total: Array) -> None:
    for j in range(row.shape[0]):
        total[j] += row[j]


@compiled(**SUMS)
def _sum(scores: Array) -> np.floating:
    """Return the sum of a row."""
    total = scores.dtype.type(0)
    for j in range(scores.shape[0]):
        total += scores[j]
    return total


@compiled(**SUMS)
def _greatest(scores: Array, lanes: Array) -> np.floating:
    """Return the greatest number of a row, ignoring NaN; ``lanes`` is a buffer.

    Comparing lane by lane is vectorised, which one running maximum would not be.
    """
    lanes[:] = -np.inf
    whole = scores.shape[0] // LANES * LANES
    for first in range(0, whole, LANES):
        for lane in range(LANES):
            lanes[lane] = max(lanes[lane], scores[first + lane])
    greatest = lanes[0]
    for lane in range(1, LANES):
        greatest = max(greatest, lanes[lane])
    for j in range(whole, scores.shape[0]):
        greatest = max(greatest, scores[j])
    return greatest


@entry(parallel=True)
def best_words(
    logits: Array,
    bias: Array,
    never: Whole,
    only: Whole,
    values: Array,
    words: Whole,
    shares: Whole,
) -> None:
    """Find the most probable words of each row, the best first, equal ones by number.

    Args:
        logits: [M, V or more] without the bias, which is added; that of ``never`` is overwritten.
        bias: [V].
        never: Words that are not returned, but keep their probability.
        only: [M], the only word that may be returned, or -1 for all but ``never``.
        values: [M, K], becomes logarithms of probabilities; -inf for missing words.
        words: [M, K], becomes their numbers.
        shares: Where the rows of each thread begin and end.
    """
    for share in prange(shares.shape[0] - 1):
        best_rows(logits, bias, never, only, values, words, shares[share], shares[share + 1])


@compiled(**SUMS)
def best_rows(
    logits: Array,
    bias: Array,
    never: Whole,
    only: Whole,
    values: Array,
    words: Whole,
    first: int,
    last: int,
) -> None:
    """Find the most probable words of the rows ``first <= m < last``; see ``best_words``."""
    lanes = np.empty(LANES, logits.dtype)
    peaks = np.empty((bias.shape[0] + BLOCK - 1) // BLOCK, logits.dtype)
    for row in range(first, last):
        scores = logits[row][: bias.shape[0]]
        for j in range(scores.shape[0]):
            scores[j] += bias[j]
        log_total = _log_total(scores, peaks, lanes)
        wanted = scores[only[row]]
        for word in never:
            scores[word] = -np.inf
            block = word // BLOCK
            peaks[block] = _greatest(scores[block * BLOCK : (block + 1) * BLOCK], lanes)
        values[row] = -np.inf
        words[row] = 0
        if only[row] >= 0:
            values[row, 0], words[row, 0] = wanted, only[row]
        else:
            _take_best(scores, peaks, values[row], words[row])
        for k in range(values.shape[1]):
            values[row, k] -= log_total


@compiled(**SUMS)
def _log_total(scores: Array, peaks: Array, lanes: Array) -> np.floating:
    """Return the logarithm of the sum of exponentials; write each block's greatest score down."""
    greatest = scores.dtype.type(-np.inf)
    for block in range(peaks.shape[0]):
        peaks[block] = _greatest(scores[block * BLOCK : (block + 1) * BLOCK], lanes)
        greatest = max(greatest, peaks[block])
    total = scores.dtype.type(0)
    for j in range(scores.shape[0]):
        total += exp(scores[j] - greatest)
    return greatest + scores.dtype.type(math.log(total))


@compiled(**SUMS)
def _take_best(scores: Array, peaks: Array, values: Array, words: Whole) -> None:
    """Fill ``values`` and ``words`` [K] with the greatest scores of a row.

    The K-th greatest of the blocks' peaks is not above the K-th greatest score, so blocks with a
    lower peak hold none of those that are looked for.
    """
    for block in range(peaks.shape[0]):
        _insert(peaks[block], block, values, words)
    least = values[-1]
    values[:] = -np.inf
    for block in range(peaks.shape[0]):
        if peaks[block] >= least:
            for word in range(block * BLOCK, min((block + 1) * BLOCK, scores.shape[0])):
                _insert(scores[word], word, values, words)


@compiled(**SUMS)
def _insert(value: float, name: int, values: Array, names: Whole) -> None:
    """Put a value in its place among those that are greatest so far; equal ones stay in front."""
    if not value > values[-1]:
        return
    place = values.shape[0] - 1
    while place > 0 and value > values[place - 1]:
        values[place], names[place] = values[place - 1], names[place - 1]
        place -= 1
    values[place], names[place] = value, name
