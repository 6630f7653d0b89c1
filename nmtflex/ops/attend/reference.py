"""Windowed attention in plain PyTorch: the specification of the fast implementations.

It works on every device and format, with gradients, and is written for readability. It gathers
each hypothesis's window into tensors [N, W, A] and [N, W, H], which the others avoid.

Legend: B sentences, S source positions, N hypotheses, W positions of the widest window, A units of
a key, H units of a value.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nmtflex.ops.attend.operation import Attended, Damping, Penalty, Source, Window, whole_sentences
from nmtflex.ops.tensors import precise


def make_source(keys: Tensor, values: Tensor, lengths: Tensor) -> Source:
    """Take keys and values as they are; see ``nmtflex.ops.attend.make_source``."""
    return Source(keys, values, lengths)


def attend(
    query: Tensor,
    source: Source,
    rows: Tensor | None = None,
    v: Tensor | None = None,
    window: Window | None = None,
    penalty: Penalty | None = None,
    damping: Damping | None = None,
    trace: bool = False,
) -> Attended:
    """Attend within windows; see ``nmtflex.ops.attend.attend``."""
    start, stop = window or whole_sentences(source, rows)
    sizes = stop - start
    offsets = torch.arange(int(sizes.max()), device=query.device)
    inside = offsets < sizes.unsqueeze(1)  # [N, W]
    # Beyond a window its last position stands in, so that nothing outside is read.
    positions = torch.minimum(start.unsqueeze(1) + offsets, stop.unsqueeze(1) - 1)  # [N, W]
    rows = torch.arange(len(query), device=query.device) if rows is None else rows
    keys = _read(source.keys, rows, positions)  # [N, W, A]
    values = _read(source.values, rows, positions)  # [N, W, H]

    scores = _scores(query, keys, v)
    if penalty is not None:
        scores = scores - penalty.at(positions)
    scores = scores.masked_fill(~inside, -torch.inf)
    weights, log_sum = torch.softmax(scores, dim=1), torch.logsumexp(scores, dim=1)
    if damping is not None:
        weights = weights * damping.at(positions)
    context = (weights.to(values.dtype).unsqueeze(1) @ values).squeeze(1)
    focus = (weights * positions).sum(1)
    if not trace:
        return Attended(context, focus, None, log_sum)
    laid_out = weights.new_zeros(len(weights), source.keys.shape[1])
    laid_out = laid_out.scatter_add(1, positions, weights * inside).detach()
    return Attended(context, focus, laid_out, log_sum)


def _read(memory: Tensor, rows: Tensor, positions: Tensor) -> Tensor:
    """Gather positions [N, W] of sentences [N]: [B, S, D] to [N, W, D]."""
    flat = rows.unsqueeze(1) * memory.shape[1] + positions
    taken = memory.flatten(0, 1).index_select(0, flat.flatten())
    return taken.view(*flat.shape, memory.shape[2])


def _scores(query: Tensor, keys: Tensor, v: Tensor | None) -> Tensor:
    """Score queries [N, A] against keys [N, W, A]; return [N, W], float32 at least."""
    if v is None:
        scores = (keys @ query.unsqueeze(2)).squeeze(2)
    else:
        scores = torch.tanh(query.unsqueeze(1) + keys) @ v
    return scores.to(precise(scores.dtype))


def window_below(tau: float, penalty: Penalty, lengths: Tensor) -> Window:
    """Return the positions with a penalty below tau; see ``nmtflex.ops.attend``.

    The radius says where to look; which position at the edge is in, the penalty itself decides.
    """
    gate, focus, sigma = penalty.gate, penalty.focus, penalty.sigma

    def below(position: Tensor) -> Tensor:
        return penalty.at(position.unsqueeze(1)).squeeze(1) < tau

    tiny = torch.finfo(gate.dtype).tiny
    radius = sigma * torch.sqrt(2 * tau / gate.clamp(min=tiny))
    last = lengths - 1
    low = torch.minimum((focus - radius).ceil().clamp(min=0), last)
    low = low - below(low - 1).long()
    low = low + (~below(low)).long()
    high = torch.minimum((focus + radius).floor(), last)
    high = high + below(high + 1).long()
    high = high - (~below(high)).long()
    # Clamped as integers, so that a NaN of broken weights shows in the context and does not crash.
    low, high = low.long().clamp(min=0), torch.minimum(high.long(), last)
    nearest = torch.minimum((focus - 0.5).ceil().long().clamp(min=0), last)
    none = low > high
    return Window(torch.where(none, nearest, low), torch.where(none, nearest, high) + 1)
