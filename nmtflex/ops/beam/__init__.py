"""The best continuations of hypotheses, sentence by sentence.

Legend: N hypotheses of T words, K words proposed for each, B sentences, M continuations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nmtflex.ops.dispatch import implementation

Array = NDArray[Any]

SLACK = 1 - 1e-6  # for rounding, by which a logarithm may exceed 0


class Beam(NamedTuple):
    """N hypotheses of one length.

    Each has a sentence, the hypothesis of the step before that it continues, its last word, and
    its summed log-probability (float64), all [N].
    """

    rows: Array
    parents: Array
    tokens: Array
    totals: Array

    def select(self, chosen: Array) -> Beam:
        """Return the hypotheses ``chosen``, a mask [N] or indices."""
        return Beam(*(part[chosen] for part in self))


class Found(NamedTuple):
    """Continuations."""

    parents: Array  # [M], the hypothesis that each continues
    words: Array  # [M]
    totals: Array  # [M], log-probabilities


class Rules(NamedTuple):
    """What a search of B sentences obeys; ``slots`` and ``best`` change."""

    most: Array  # [B], most words of a translation
    slots: Array  # [B], beam size - finished hypotheses
    best: Array  # [B, W], scores of the W wanted finished hypotheses, the worst first
    longest: Array  # [B], the divisor of a score at the greatest length
    length_penalty: float  # alpha
    end: int  # the word that ends a translation
    never: Array  # words that are not produced
    no_repeat: int  # tokens in a row that a translation never repeats; 0: it may


class Barred(NamedTuple):
    """Words that hypotheses must not take."""

    words: Array  # [N, at most T]; of each hypothesis only the first ``counts`` are valid
    counts: Array  # [N]


def places(groups: Array) -> Array:
    """Return the place of each number [N], ascending, among those equal to it."""
    return np.arange(len(groups)) - np.searchsorted(groups, groups)


def extend(rows: Array, totals: Array, values: Array, words: Array, slots: Array) -> Found:
    """Return the best continuations of each sentence, as many as it has slots.

    They are sorted by sentence, then by log-probability, the best first; equal ones by lowest word,
    then by hypothesis.

    Args:
        rows: [N], ascending: the sentence of each hypothesis.
        totals: [N], summed log-probabilities.
        values: [N, K], log-probabilities of words, the best first; -inf is no word.
        words: [N, K], these words.
        slots: [B], how many each sentence may have; at least 1 of those in ``rows``.
    """
    chosen = implementation("beam", torch.device("cpu"))
    return Found(*chosen.extend(rows, totals, values, words, slots))


def repeating(said: Array, size: int) -> Barred:
    """Return the words that would repeat an n-gram of their own hypothesis.

    Args:
        said: [N, T], the words of each hypothesis.
        size: n, in tokens.
    """
    return Barred(*implementation("beam", torch.device("cpu")).repeating(said, size))


def leave_out(values: Array, words: Array, barred: Barred) -> tuple[Array, Array]:
    """Return the proposals that are not barred first, in their order; behind them nothing is left.

    Args:
        values: [N, K], log-probabilities, the best first; those behind become -inf.
        words: [N, K], these words.
        barred: What must not be taken.
    """
    chosen = implementation("beam", torch.device("cpu"))
    found: tuple[Array, Array] = chosen.leave_out(values, words, *barred)
    return found
