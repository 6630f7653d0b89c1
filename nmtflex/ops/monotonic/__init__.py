"""Attention that only moves forward: where a scan stops, and its expectation for training.

Everything is computed in float32 at least. Legend: B sentences, T steps, S source positions after
padding, N hypotheses, A units of a key.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from nmtflex.ops.dispatch import implementation


class Stops(NamedTuple):
    """Where scans stopped."""

    position: Tensor  # [N, T], from 0; the sentence's length where no position was chosen
    chosen: Tensor  # [N, T]: 1, or 0 where no position was; NaN shows a NaN among the energies


def scan(
    query: Tensor,
    v: Tensor,
    bias: Tensor,
    keys: Tensor,
    lengths: Tensor,
    rows: Tensor | None,
    start: Tensor,
) -> Stops:
    """Scan from left to right for the first position with an energy of at least 0, step by step.

    Each step begins where the step before stopped, and computes no energy beyond its own stop::

        energy(s) = v . tanh(query + keys[s]) + bias

    There is no gradient. A scan that has passed the end of its sentence stays there.

    Args:
        query: [N, T, A].
        v: [A].
        bias: [1].
        keys: [B, S, A]; padding is never read.
        lengths: [N] real positions of each hypothesis's sentence.
        rows: [N] sentence of each hypothesis; None: hypothesis n is of sentence n.
        start: [N] first position of the first step, at most the sentence's length.
    """
    chosen = implementation("monotonic", keys.device)
    return Stops(*chosen.scan(query, v, bias, keys, lengths, rows, start))


def expected(energies: Tensor, before: Tensor, lengths: Tensor) -> Tensor:
    """Return the probabilities that the scan of a step stops at a position.

    Raffel et al. (2017), https://arxiv.org/abs/1704.00784, eq. 12-14, with alpha[-1] = ``before``::

        p[t](s)     = sigmoid(energies[t](s))
        q[t](s)     = (1 - p[t](s-1)) q[t](s-1) + alpha[t-1](s)
        alpha[t](s) = p[t](s) q[t](s)

    No number is divided by another, so nothing needs to be kept away from 0. Gradients flow to
    energies and ``before``.

    Args:
        energies: [B, T, S].
        before: [B, S].
        lengths: [B] real positions of each sentence, at least 1; padding is never read.

    Returns:
        alpha [B, T, S], 0 beyond a sentence's length.
    """
    return implementation("monotonic", energies.device).expected(energies, before, lengths)


def chunked(alpha: Tensor, scores: Tensor, lengths: Tensor, width: int) -> Tensor:
    """Spread the probability of each stop over the chunk of positions that ends there.

    Chiu and Raffel (2018), https://arxiv.org/abs/1712.05382::

        beta(s) = sum over the stops k from s to s + width - 1 of alpha(k) share(s, k)

    ``share`` is the softmax of the scores over the chunk of k, the positions from k - width + 1
    to k. It is computed chunk by chunk, so scores may differ as much as they like. Gradients flow
    to alpha and scores.

    Args:
        alpha: [B, T, S], 0 beyond a sentence's length.
        scores: [B, T, S].
        lengths: [B] real positions of each sentence, at least 1; padding is never read.
        width: w, positions of a chunk.

    Returns:
        beta [B, T, S], 0 beyond a sentence's length.
    """
    width = min(width, alpha.shape[2])
    return implementation("monotonic", alpha.device).chunked(alpha, scores, lengths, width)
