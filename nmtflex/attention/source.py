"""The source as a memory of its positions, attended in whole or within a window.

What global, local and flexible attention share. Legend: B sentences, S source positions, N
hypotheses, W positions of the widest window, H encoder units, Q decoder units, A units of a key.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from nmtflex.attention.base import Trace
from nmtflex.attention.grouping import Groups
from nmtflex.attention.scores import Score


class SourceMemory(NamedTuple):
    """A batch's source, position by position."""

    keys: Tensor  # [B, S, A]
    values: Tensor  # [B, S, H]
    mask: Tensor  # [B, S], True at real tokens
    lengths: Tensor  # [B] real tokens


def read_source(score: Score, states: Tensor, mask: Tensor) -> SourceMemory:
    """Project the keys of encoder states [B, S, H], once a sentence."""
    return SourceMemory(score.keys(states), states, mask, mask.sum(1))


def of_hypotheses(lengths: Tensor, rows: Tensor | None) -> Tensor:
    """Return each hypothesis's source length [N] of those of the sentences [B]."""
    return lengths if rows is None else lengths[rows]


def attend_all(
    score: Score,
    query: Tensor,
    memory: SourceMemory,
    rows: Tensor | None,
    penalty: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Attend to every position: the softmax of score - penalty.

    Args:
        score: The score function.
        query: [N, Q].
        memory: Of B sentences; it is not copied for the hypotheses.
        rows: [N] sentence of each hypothesis, or None for one each.
        penalty: [N, S], or None for 0.

    Returns:
        Contexts [N, H] and weights [N, S], 0 at padding.
    """
    groups = Groups(rows, len(memory.mask))
    keys, values, mask = (groups.memory(part) for part in memory[:3])
    scores = score(groups.spread(query), keys)  # [G, W, S]
    if penalty is not None:
        scores = scores - groups.spread(penalty)
    scores = scores.masked_fill(~mask.unsqueeze(1), -torch.inf)
    weights = torch.softmax(scores, dim=2)
    return groups.collect(weights @ values), groups.collect(weights)


class Window:
    """The positions ``start <= s < stop`` of each hypothesis, side by side.

    Only these are read: what lies outside is neither scored nor weighed, whatever it holds.

    Args:
        start: [N] first position, at least 0.
        stop: [N] one past the last, greater than ``start`` and at most the source's length.
        rows: [N] sentence of each hypothesis, or None for one each.
    """

    def __init__(self, start: Tensor, stop: Tensor, rows: Tensor | None) -> None:
        self.start = start
        self.stop = stop
        self.sizes = stop - start  # [N], the score computations of a step
        self.rows = torch.arange(len(start), device=start.device) if rows is None else rows
        offsets = torch.arange(int(self.sizes.max()), device=start.device)
        self.inside = offsets < self.sizes.unsqueeze(1)  # [N, W]
        # Beyond a window its last position stands in, so that nothing outside is read.
        positions = start.unsqueeze(1) + offsets
        self.positions = torch.minimum(positions, stop.unsqueeze(1) - 1)  # [N, W]

    def read(self, tensor: Tensor) -> Tensor:
        """Gather the windows: [B, S, D] to [N, W, D]."""
        flat = self.rows.unsqueeze(1) * tensor.shape[1] + self.positions
        taken = tensor.flatten(0, 1).index_select(0, flat.flatten())
        return taken.view(*flat.shape, tensor.shape[2])

    def lay_out(self, weights: Tensor, length: int) -> Tensor:
        """Put weights [N, W] at their positions: [N, S], zeros outside the windows."""
        laid = weights.new_zeros(len(weights), length)
        return laid.scatter_add(1, self.positions, weights * self.inside)

    def trace(self, weights: Tensor, length: int, centre: Tensor) -> Trace:
        """Tell of a step whose weights [N, W] lie about a centre [N], in sources of S positions."""
        return Trace(
            computed=self.sizes,
            weights=self.lay_out(weights, length),
            focus=centre,
            window_start=self.start,
            window_stop=self.stop,
        )


def attend_within(
    score: Score,
    query: Tensor,
    memory: SourceMemory,
    window: Window,
    penalty: Tensor | None = None,
    damping: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Attend to the positions of a window: the softmax of score - penalty over those, damped.

    Args:
        score: The score function.
        query: [N, Q].
        memory: Of B sentences.
        window: Of N hypotheses.
        penalty: [N, W], or None for 0.
        damping: [N, W] factors of the weights after the softmax, or None for 1.

    Returns:
        Contexts [N, H] and weights [N, W], 0 beyond a window.
    """
    scores = score(query.unsqueeze(1), window.read(memory.keys)).squeeze(1)  # [N, W]
    if penalty is not None:
        scores = scores - penalty
    weights = torch.softmax(scores.masked_fill(~window.inside, -torch.inf), dim=1)
    if damping is not None:
        weights = weights * damping
    context = weights.unsqueeze(1) @ window.read(memory.values)
    return context.squeeze(1), weights


def exactly(tensor: Tensor) -> Tensor:
    """Return a tensor in float32 at least: positions and penalties lose too much in less."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()
