"""The source as a memory of its positions, attended in whole or within a window.

What global, local and flexible attention share; the work itself is done in ``nmtflex.kernels``.
Legend: B sentences, S source positions, N hypotheses, H encoder units, A units of a key.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nmtflex.attention.scores import Score
from nmtflex.kernels import Attended, Damping, Penalty, Source, Window, attend, make_source


def read_source(score: Score, states: Tensor, mask: Tensor) -> Source:
    """Project the keys of encoder states [B, S, H], once a sentence."""
    return make_source(score.keys(states), states, mask.sum(1))


def attend_source(
    score: Score,
    query: Tensor,
    memory: Source,
    rows: Tensor | None,
    window: Window | None = None,
    penalty: Penalty | None = None,
    damping: Damping | None = None,
    trace: bool = False,
) -> Attended:
    """Attend by a score function to queries [N, Q]; see ``nmtflex.kernels.attend``."""
    return attend(score.queries(query), memory, rows, score.v, window, penalty, damping, trace)


def of_hypotheses(lengths: Tensor, rows: Tensor | None) -> Tensor:
    """Return each hypothesis's source length [N] of those of the sentences [B]."""
    return lengths if rows is None else lengths[rows]


def exactly(tensor: Tensor) -> Tensor:
    """Return a tensor in float32 at least: positions and penalties lose too much in less."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()
