"""The loops of scans, of their expectation and of chunks on the CPU, compiled by numba.

Legend as in ``nmtflex.ops.monotonic``. A thread computes whole sentences or hypotheses, each in the
same order: results do not depend on the number of threads or on the rest of a batch. ``shares``
says where the sentences or hypotheses of each thread begin and end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import prange

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.attend.loops import additive, softmax
from nmtflex.ops.compiled import SUMS, compiled, entry
from nmtflex.ops.elementary import exp


class Scanned(NamedTuple):
    """The inputs of a scan."""

    query: Array  # [N, T, A]
    v: Array  # [A]
    bias: Array  # [1]
    keys: Array  # [B, S, A]
    rows: Whole  # [N]
    start: Whole  # [N]
    lengths: Whole  # [N]


class Expected(NamedTuple):
    """The inputs and the result of an expectation."""

    energies: Array  # [B, T, S]
    before: Array  # [B, S]
    lengths: Whole  # [B]
    alpha: Array  # [B, T, S]


class Chunked(NamedTuple):
    """The inputs of chunks, and room."""

    alpha: Array  # [B, T, S]
    scores: Array  # [B, T, S]
    lengths: Whole  # [B]
    room: Array  # [B, w]


@entry(parallel=True)
def scan(scanned: Scanned, position: Whole, chosen: Array, shares: Whole) -> None:
    """Scan through the source of each hypothesis, step by step.

    Args:
        scanned: What is scanned.
        position: [N, T], becomes where the steps stop.
        chosen: [N, T], becomes 1, 0 at the end of a sentence, or NaN.
        shares: Of the hypotheses.
    """
    for share in prange(shares.shape[0] - 1):
        for n in range(shares[share], shares[share + 1]):
            s = scanned.start[n]
            keys, length = scanned.keys[scanned.rows[n]], scanned.lengths[n]
            for t in range(position.shape[1]):
                query = scanned.query[n, t]
                s, chosen[n, t] = stop(query, scanned.v, scanned.bias, keys, s, length)
                position[n, t] = s


@compiled(**SUMS)
def stop(
    query: Array, v: Array, bias: Array, keys: Array, first: int, length: int
) -> tuple[int, np.floating]:
    """Return where a scan of keys [S, A] that begins at ``first`` stops, and 1, 0 or NaN.

    It is the length and 0 if no energy is at least 0.
    """
    kind = query.dtype.type
    for s in range(first, length):
        energy = additive(query, v, keys[s]) + bias[0]
        if not energy < 0:  # at NaN too, which shall be seen
            return s, energy if np.isnan(energy) else kind(1)
    return length, kind(0)


@entry(parallel=True)
def expected(made: Expected, shares: Whole) -> None:
    """Compute the probabilities of each sentence's stops.

    Args:
        made: Its alpha is filled.
        shares: Of the sentences.
    """
    for share in prange(shares.shape[0] - 1):
        for row in range(shares[share], shares[share + 1]):
            length, last = made.lengths[row], made.before[row]
            for t in range(made.alpha.shape[1]):
                alpha = made.alpha[row, t]
                _stop_probabilities(made.energies[row, t, :length], alpha[:length])
                _pass(alpha[:length], last)
                alpha[length:] = 0
                last = alpha


@compiled(**SUMS)
def _stop_probabilities(energies: Array, p: Array) -> None:
    """Fill p with sigmoid(energies), exact near 0: expectations must not be negative."""
    one = p.dtype.type(1)
    for s in range(p.shape[0]):
        p[s] = one / (one + exp(-energies[s]))


@compiled(**SUMS)
def _pass(p: Array, last: Array) -> None:
    """Turn the p of a step into its alpha, given that of the step before."""
    q, missed = p.dtype.type(0), p.dtype.type(0)
    for s in range(p.shape[0]):
        q = missed * q + last[s]
        missed = p.dtype.type(1) - p[s]
        p[s] *= q


@entry(parallel=True)
def backward_expected(
    made: Expected, grads: Array, of_energies: Array, of_before: Array, room: Array, shares: Whole
) -> None:
    """The backward pass of ``expected``.

    Args:
        made: As ``expected`` left it.
        grads: [B, T, S], of alpha.
        of_energies: [B, T, S], becomes the gradient of the energies.
        of_before: [B, S], becomes that of ``before``.
        room: [B, 2, S], for p and q.
        shares: Of the sentences.
    """
    steps = made.alpha.shape[1]
    for share in prange(shares.shape[0] - 1):
        for row in range(shares[share], shares[share + 1]):
            length, carried = made.lengths[row], of_before[row]
            p, q = room[row, 0, :length], room[row, 1, :length]
            carried[:] = 0
            for back in range(steps):
                t = steps - 1 - back
                last = made.alpha[row, t - 1] if t > 0 else made.before[row]
                _stop_probabilities(made.energies[row, t, :length], p)
                _arrive(p, last, q)
                _backward_pass(p, q, grads[row, t], carried, of_energies[row, t])
                of_energies[row, t, length:] = 0


@compiled(**SUMS)
def _arrive(p: Array, last: Array, q: Array) -> None:
    """Compute q again."""
    q[0] = last[0]
    for s in range(1, p.shape[0]):
        q[s] = (p.dtype.type(1) - p[s - 1]) * q[s - 1] + last[s]


@compiled(**SUMS)
def _backward_pass(p: Array, q: Array, grads: Array, carried: Array, of_energies: Array) -> None:
    """Pass a step's gradient on; ``carried`` is that of alpha from the step after, then of last."""
    one, of_next = p.dtype.type(1), p.dtype.type(0)  # of_next: gradient of q(s+1)
    for back in range(p.shape[0]):
        s = p.shape[0] - 1 - back
        arriving = grads[s] + carried[s]
        of_energies[s] = q[s] * (arriving - of_next) * p[s] * (one - p[s])
        of_next = p[s] * arriving + (one - p[s]) * of_next
        carried[s] = of_next


@entry(parallel=True)
def chunked(chunks: Chunked, beta: Array, shares: Whole) -> None:
    """Spread the probability of each stop over its chunk.

    Args:
        chunks: What is spread.
        beta: [B, T, S], is filled.
        shares: Of the sentences.
    """
    for share in prange(shares.shape[0] - 1):
        for row in range(shares[share], shares[share + 1]):
            room = chunks.room[row]
            for t in range(beta.shape[1]):
                made = beta[row, t]
                made[:] = 0
                for stop in range(chunks.lengths[row]):
                    alpha = chunks.alpha[row, t, stop]
                    if alpha != 0:
                        first, part = _share_out(chunks.scores[row, t], stop, room)
                        for i in range(part.shape[0]):
                            made[first + i] += alpha * part[i]


@compiled(**SUMS)
def _share_out(scores: Array, stop: int, room: Array) -> tuple[int, Array]:
    """Return the first position of a stop's chunk, and the softmax over the chunk."""
    first = max(stop + 1 - room.shape[0], 0)
    part = room[: stop + 1 - first]
    part[:] = scores[first : stop + 1]
    softmax(part)
    return first, part


@entry(parallel=True)
def backward_chunked(
    chunks: Chunked, grads: Array, of_alpha: Array, of_scores: Array, shares: Whole
) -> None:
    """The backward pass of ``chunked``.

    Args:
        chunks: As in ``chunked``.
        grads: [B, T, S], of beta.
        of_alpha: [B, T, S], becomes the gradient of alpha.
        of_scores: [B, T, S], becomes that of the scores.
        shares: Of the sentences.
    """
    for share in prange(shares.shape[0] - 1):
        for row in range(shares[share], shares[share + 1]):
            for t in range(grads.shape[1]):
                of_alpha[row, t] = 0
                of_scores[row, t] = 0
                for stop in range(chunks.lengths[row]):
                    first, part = _share_out(chunks.scores[row, t], stop, chunks.room[row])
                    of_alpha[row, t, stop] = _backward_share(
                        part,
                        chunks.alpha[row, t, stop],
                        grads[row, t, first : stop + 1],
                        of_scores[row, t, first : stop + 1],
                    )


@compiled(**SUMS)
def _backward_share(part: Array, alpha: float, grads: Array, of_scores: Array) -> np.floating:
    """Add the gradient of a chunk's scores to theirs; return that of its stop's alpha."""
    mean = part.dtype.type(0)
    for i in range(part.shape[0]):
        mean += part[i] * grads[i]
    for i in range(part.shape[0]):
        of_scores[i] += alpha * part[i] * (grads[i] - mean)
    return mean
