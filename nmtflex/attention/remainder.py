"""The remainder: one item that stands for what a window of flexible attention leaves out.

Legend: B sentences, S source positions after padding, N hypotheses, A units of a key, H units of a
value.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from nmtflex.attention.base import Trace
from nmtflex.ops import sequence
from nmtflex.ops.attend import Penalty, Source, Window, window_below
from nmtflex.ops.linear.looking import REACH
from nmtflex.ops.tensors import precise


class Sides(NamedTuple):
    """The positions that N windows leave out, before and after them."""

    begin: Tensor  # [2, N]
    end: Tensor  # [2, N]

    @property
    def number(self) -> Tensor:
        """The number of positions [N]."""
        return (self.end - self.begin).sum(0)


class Sums(NamedTuple):
    """Keys and values of a batch's source, added up so that the mean of any stretch is two reads.

    Sums of deviations from a sentence's mean stay small, so that their differences are exact enough
    in float32, however long the sentence is.
    """

    table: Tensor  # [B, S + 2, A + H], sums over the first s positions; last the sentence's means
    units: int  # A
    lengths: Tensor  # [B]

    def mean(self, rows: Tensor, left: Sides) -> tuple[Tensor, Tensor]:
        """Return the mean keys [N, A] and values [N, H] of what N windows leave out.

        It is the sentence's mean where nothing is left out.

        Args:
            rows: [N] sentence of each hypothesis.
            left: What is left out.
        """
        first = rows * self.table.shape[1]
        places = torch.cat([*(left.end + first), *(left.begin + first)])
        read = self.table.flatten(0, 1).index_select(0, places).view(2, 2, len(rows), -1)
        deviation = (read[0] - read[1]).sum(0) / left.number.clamp(min=1).unsqueeze(1)
        mean = self.table[:, -1].index_select(0, rows) + deviation
        return mean[:, : self.units], mean[:, self.units :]


def sum_up(source: Source) -> Sums:
    """Add up keys and values once a sentence, in float32 at least; padding is never read."""
    exact, lengths = precise(source.keys.dtype), source.lengths
    joined = torch.cat([source.keys.to(exact), source.values.to(exact)], dim=2)
    inside = torch.arange(joined.shape[1], device=joined.device) < lengths.unsqueeze(1)
    padding = ~inside.unsqueeze(2)
    joined = joined.masked_fill(padding, 0)
    means = joined.sum(1, keepdim=True) / lengths.view(-1, 1, 1)
    deviations = (joined - means).masked_fill(padding, 0)
    table = torch.cat([torch.zeros_like(means), deviations.cumsum(1), means], dim=1)
    return Sums(table, source.keys.shape[2], lengths)


class Remainder(NamedTuple):
    """What stands for the positions out of N windows, and how much of the weight it takes."""

    share: Tensor  # [N], of all weight; 0 where nothing is left out
    value: Tensor  # [N, H]
    left: Sides  # what it stands for

    def join(self, context: Tensor) -> Tensor:
        """Return contexts [N, H] of the windows with the remainder's part in them."""
        share = self.share.unsqueeze(1)
        return (context + share * (self.value - context)).to(context.dtype)

    def seen(self, trace: Trace) -> Trace:
        """Return a trace of the windows with one more score, and with the weights left out.

        A context is a sum over all these weights: the share is spread evenly over the positions.
        """
        count = self.left.number
        trace = trace._replace(computed=trace.computed + (count > 0))
        if trace.weights is None:
            return trace
        positions = torch.arange(trace.weights.shape[1], device=count.device)
        begin, end = (bound.unsqueeze(2) for bound in self.left)
        out = ((begin <= positions) & (positions < end)).any(0)
        share = self.share.detach().unsqueeze(1)
        weights = trace.weights * (1 - share) + out * (share / count.clamp(min=1).unsqueeze(1))
        return trace._replace(weights=weights)


def remainder(
    sums: Sums,
    query: Tensor,
    v: Tensor | None,
    rows: Tensor | None,
    window: Window,
    penalty: Penalty,
    log_sum: Tensor,
    tau: float,
) -> Remainder:
    """Weigh what lies out of each window by one score.

    With n positions out of the window whose penalty is below tau + 2, and means over them::

        score = score(h, mean key) + log n - mean penalty
        share = exp(score) / (exp(score) + sum within the window of exp(score(h, k_s) - penalty(s)))

    Args:
        sums: Of the source.
        query: [N, A], projected for the score.
        v: [A] of the additive score, or None for the dot product.
        rows: [N] sentence of each hypothesis; None: hypothesis n is of sentence n.
        window: Of the positions with a penalty below tau.
        penalty: Of N hypotheses.
        log_sum: [N], of the windows' softmax; see ``attend``.
        tau: Threshold.
    """
    if rows is None:
        rows = torch.arange(len(query), device=query.device)
    left = left_out(window, penalty, sums.lengths[rows], tau)
    key, value = sums.mean(rows, left)
    count = left.number
    score = sequence.scores(query.unsqueeze(1), key.unsqueeze(1), torch.ones_like(count), v)
    some = count.clamp(min=1).to(penalty.focus.dtype)
    mean = penalty.gate * _squares(left, penalty.focus) / some / (2 * penalty.sigma**2)
    share = torch.sigmoid(score.flatten() + some.log() - mean - log_sum)
    return Remainder(share.masked_fill(count == 0, 0), value, left)


def left_out(window: Window, penalty: Penalty, lengths: Tensor, tau: float) -> Sides:
    """Return the positions out of N windows whose penalty is below tau + 2.

    Args:
        window: Of the positions with a penalty below tau.
        penalty: Of N hypotheses.
        lengths: [N], of their sentences.
        tau: Threshold.
    """
    reach = window_below(tau + REACH, penalty, lengths)
    return Sides(
        torch.stack([torch.minimum(reach.start, window.start), window.stop]),
        torch.stack([window.start, torch.maximum(reach.stop, window.stop)]),
    )


def _squares(left: Sides, focus: Tensor) -> Tensor:
    """Return the sums [N] of (s - focus)^2 over what is left out, without cancellation."""
    begin, end = (bound.to(focus.dtype) for bound in left)
    count, middle = end - begin, (begin + end - 1) / 2 - focus
    return (count * (middle**2 + (count**2 - 1) / 12)).sum(0)
