"""The arrays that the CPU loops read and write.

Legend: B sentences, S source positions, N hypotheses, W positions of the widest window, A units of
a key, H units of a value. Windows are rows [N, W] that begin at each window's first position;
values beyond the window are never read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Whole = NDArray[np.int64]


class Inputs(NamedTuple):
    """Arrays of one format, float32 or float64; unused ones have length 0."""

    query: Array  # [N, A]
    v: Array  # [A], of the additive score
    keys: Array  # [B, S, A]
    values: Array  # [B, S, H]
    rows: Whole  # [N]
    start: Whole  # [N]
    stop: Whole  # [N]
    gate: Array  # [N], of the penalty
    focus: Array  # [N], of the penalty
    centre: Array  # [N], of the damping
    penalty_spread: float  # 2 sigma^2 of the penalty
    damping_spread: float  # 2 sigma^2 of the damping


class Arriving(NamedTuple):
    """Gradients of the results."""

    context: Array  # [N, H]
    focus: Array  # [N]
    log_sum: Array  # [N]


class Leaving(NamedTuple):
    """Gradients of each hypothesis's own inputs, of the same shapes."""

    scores: Array  # [N, W], of the scores less the penalty
    query: Array  # [N, A]
    v: Array  # [N, A], a summand of each hypothesis
    gate: Array
    focus: Array
    centre: Array


class Steps(NamedTuple):
    """What the gradients of keys and values need of M hypotheses, of one or many steps."""

    query: Array  # [M, A]
    v: Array  # [A]
    start: Whole  # [M]
    stop: Whole  # [M]
    weights: Array  # flat, the windows at ``place``
    scores: Array  # flat like weights, gradient of the scores
    place: Whole  # [M]
    context: Array  # [M, H], gradient of the context
    order: Whole  # [M], hypotheses by sentence
    ends: Whole  # [B + 1], where the hypotheses of each sentence begin in ``order``
