"""Attention in all steps of a decoder at once, if no step needs the context of another.

Only the reference makes a tensor [B, T, S, A]. All results are float32
at least, under autocast too. Legend: B sentences, T steps, S source positions after padding, A
units of a key, H units of a value.
"""

from __future__ import annotations

from torch import Tensor

from nmtflex.ops.dispatch import implementation


def scores(query: Tensor, keys: Tensor, lengths: Tensor, v: Tensor | None = None) -> Tensor:
    """Score every query against every key of its sentence: v . tanh(q + k), or q . k without a v.

    Gradients flow to query, keys and v. Padding is never read.

    Args:
        query: [B, T, A].
        keys: [B, S, A].
        lengths: [B] real positions of each sentence, at least 1.
        v: [A] of the additive score, or None for the dot product.

    Returns:
        [B, T, S], 0 beyond a sentence's length.
    """
    return implementation("sequence", keys.device).scores(query, keys, lengths, v)


def walk(
    scores: Tensor, gate: Tensor, focus: Tensor, lengths: Tensor, sigma: float, tau: float
) -> tuple[Tensor, Tensor]:
    """Weigh the positions step by step, each step near the focus of the step before.

    With ``focus`` as p[-1]::

        penalty[t](s) = gate[t] (s - p[t-1])^2 / (2 sigma^2)
        weights[t](s) = softmax over s of scores[t](s) - penalty[t](s)
        p[t]          = sum over s of weights[t](s) s

    The softmax runs over the positions of a sentence, or over those that
    ``attend.window_below`` finds for tau; all other weights are 0.
    Gradients flow to scores, gates and the first focus, and through each focus to the steps before,
    but not through the borders of a window.

    Args:
        scores: [B, T, S].
        gate: [B, T].
        focus: [B], source positions from 0.
        lengths: [B] real positions of each sentence, at least 1.
        sigma: In source positions.
        tau: Threshold of the penalty; inf for none.

    Returns:
        Weights [B, T, S] and each step's own focus p [B, T].
    """
    chosen = implementation("sequence", scores.device)
    return chosen.walk(scores, gate, focus, lengths, sigma, tau)


def contexts(weights: Tensor, values: Tensor, lengths: Tensor) -> Tensor:
    """Return the weighted sums [B, T, H] of values [B, S, H], in the format of the values.

    Args:
        weights: [B, T, S], 0 beyond a sentence's length.
        values: [B, S, H]; what lies beyond a sentence's length is never read.
        lengths: [B] real positions of each sentence, at least 1.
    """
    return implementation("sequence", values.device).contexts(weights, values, lengths)
