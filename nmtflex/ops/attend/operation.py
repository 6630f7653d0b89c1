"""The arguments and results of windowed attention, for every implementation.

Legend: B sentences, S source positions after padding, N hypotheses, A units of a key, H units of a
value.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Source(NamedTuple):
    """A batch's source, position by position; made once by ``make_source``, read at every step.

    Sentences may be left out by indexing all three alike.
    """

    keys: Tensor  # [B, S, A]
    values: Tensor  # [B, S, H]
    lengths: Tensor  # [B] real positions, at least 1; positions beyond are never read

    def lengths_of(self, rows: Tensor | None) -> Tensor:
        """Return the length [N] of each hypothesis's sentence; without rows, of each sentence."""
        return self.lengths if rows is None else self.lengths[rows]


class Window(NamedTuple):
    """The positions ``start <= s < stop`` that each hypothesis reads, at least one."""

    start: Tensor  # [N], at least 0
    stop: Tensor  # [N], at most S


class Penalty(NamedTuple):
    """What is taken off the score of a position s: gate (s - focus)^2 / (2 sigma^2)."""

    gate: Tensor  # [N]
    focus: Tensor  # [N], source positions from 0
    sigma: float  # source positions

    def at(self, positions: Tensor) -> Tensor:
        """Return the penalty of positions [N, W]."""
        away = positions - self.focus.unsqueeze(1)
        return self.gate.unsqueeze(1) * away**2 / (2 * self.sigma**2)


class Damping(NamedTuple):
    """The factor of a weight after the softmax: exp(-(s - centre)^2 / (2 sigma^2))."""

    centre: Tensor  # [N], source positions from 0
    sigma: float  # source positions

    def at(self, positions: Tensor) -> Tensor:
        """Return the factors of positions [N, W]."""
        away = positions - self.centre.unsqueeze(1)
        return torch.exp(-(away**2) / (2 * self.sigma**2))


class Attended(NamedTuple):
    """The result of a step of attention."""

    context: Tensor  # [N, H], the weighted sum of the values
    focus: Tensor  # [N], the weighted sum of the positions, float32 at least
    weights: Tensor | None  # [N, S] to look at, without gradient; 0 outside the window
    log_sum: Tensor  # [N], of the softmax: log of the sum of exp(score - penalty), float32 at least


def whole_sentences(source: Source, rows: Tensor | None) -> Window:
    """Return the window of all positions but padding, for hypotheses of sentences [N]."""
    stop = source.lengths_of(rows)
    return Window(torch.zeros_like(stop), stop)
