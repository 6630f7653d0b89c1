"""The remainder: one item that stands for what a window of flexible attention leaves out.

Legend: B sentences, S source positions after padding, N hypotheses, A units of a key, H units of a
value.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from nmtflex.attention.base import Trace
from nmtflex.ops import sequence
from nmtflex.ops.attend import Penalty, Source, Window, window_below
from nmtflex.ops.tensors import precise

REACH = 2.0  # of penalties beyond tau: what is further away would weigh less than e^-2 as much


class Sums(NamedTuple):
    """Keys and values of a batch's source, added up so that the mean of any stretch is two reads.

    Sums of deviations from a sentence's mean stay small, so that their differences are exact enough
    in float32, however long the sentence is.
    """

    means: Tensor  # [B, A + H], of the keys and values of a sentence
    sums: Tensor  # [B, S + 1, A + H], of the deviations of the first s positions
    units: int  # A
    lengths: Tensor  # [B]

    def mean(self, rows: Tensor, around: Window, window: Window) -> tuple[Tensor, Tensor]:
        """Return the mean keys [N, A] and values [N, H] within ``around`` and out of ``window``.

        Args:
            rows: [N] sentence of each hypothesis.
            around: [N] stretches that hold the windows; a sentence's mean if nothing is left.
            window: [N] stretches left out.
        """
        flat, first = self.sums.flatten(0, 1), rows * self.sums.shape[1]
        (low, high), (start, stop) = around, window
        left, right = (
            flat.index_select(0, first + end) - flat.index_select(0, first + begin)
            for begin, end in ((low, start), (stop, high))
        )
        count = _left_out(around, window).clamp(min=1).unsqueeze(1)
        mean = self.means.index_select(0, rows) + (left + right) / count
        return mean[:, : self.units], mean[:, self.units :]


def sum_up(source: Source) -> Sums:
    """Add up keys and values once a sentence, in float32 at least; padding is never read."""
    exact, lengths = precise(source.keys.dtype), source.lengths
    joined = torch.cat([source.keys.to(exact), source.values.to(exact)], dim=2)
    inside = torch.arange(joined.shape[1], device=joined.device) < lengths.unsqueeze(1)
    padding = ~inside.unsqueeze(2)
    joined = joined.masked_fill(padding, 0)
    means = joined.sum(1) / lengths.unsqueeze(1)
    deviations = (joined - means.unsqueeze(1)).masked_fill(padding, 0)
    sums = functional.pad(deviations.cumsum(1), (0, 0, 1, 0))
    return Sums(means, sums, source.keys.shape[2], lengths)


class Remainder(NamedTuple):
    """What stands for the positions out of N windows, and how much of the weight it takes."""

    share: Tensor  # [N], of all weight; 0 where nothing is left out
    value: Tensor  # [N, H]
    around: Window  # [N], within which it stands for all positions out of the window
    window: Window  # [N]

    def join(self, context: Tensor) -> Tensor:
        """Return contexts [N, H] of the windows with the remainder's part in them."""
        share = self.share.unsqueeze(1)
        return (context + share * (self.value - context)).to(context.dtype)

    def seen(self, trace: Trace) -> Trace:
        """Return a trace of the windows with one more score, and with the weights left out.

        A context is a sum over all these weights: the share is spread evenly over the positions.
        """
        count = _left_out(self.around, self.window)
        trace = trace._replace(computed=trace.computed + (count > 0))
        if trace.weights is None:
            return trace
        positions = torch.arange(trace.weights.shape[1], device=count.device)
        (low, high), (start, stop) = (
            (bound.unsqueeze(1) for bound in stretch) for stretch in (self.around, self.window)
        )
        out = (low <= positions) & (positions < high)
        out &= (positions < start) | (stop <= positions)
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
    reach = window_below(tau + REACH, penalty, sums.lengths[rows])
    around = Window(
        torch.minimum(reach.start, window.start), torch.maximum(reach.stop, window.stop)
    )
    key, value = sums.mean(rows, around, window)
    count = _left_out(around, window)
    one = torch.ones_like(count)
    score = sequence.scores(query.unsqueeze(1), key.unsqueeze(1), one, v).flatten()
    some = count.clamp(min=1)
    squares = _squares(around.start, window.start, penalty.focus)
    squares = squares + _squares(window.stop, around.stop, penalty.focus)
    score = score + some.to(score.dtype).log()
    score = score - penalty.gate * squares / some / (2 * penalty.sigma**2)
    share = torch.sigmoid(score - log_sum)
    return Remainder(share.masked_fill(count == 0, 0), value, around, window)


def _left_out(around: Window, window: Window) -> Tensor:
    """Return the number [N] of positions within ``around`` and out of ``window``."""
    return (around.stop - around.start) - (window.stop - window.start)


def _squares(start: Tensor, stop: Tensor, focus: Tensor) -> Tensor:
    """Return the sums [N] of (s - focus)^2 over start <= s < stop, without cancellation."""
    start, stop = start.to(focus.dtype), stop.to(focus.dtype)
    count, middle = stop - start, (start + stop - 1) / 2 - focus
    return count * (middle**2 + (count**2 - 1) / 12)
