"""The positions that a threshold leaves of a penalty. Legend: N hypotheses."""

from __future__ import annotations

import torch
from torch import Tensor

from nmtflex.kernels import choice
from nmtflex.kernels.operation import Penalty, Window


def window_below(tau: float, penalty: Penalty, lengths: Tensor) -> Window:
    """Return the positions with a penalty below a threshold, which lie side by side.

    Where no position has one, it is the position nearest to the focus, the first of two.

    Args:
        tau: Threshold.
        penalty: Of N hypotheses, in float32 or float64.
        lengths: [N], source tokens of each.
    """
    if choice(penalty.gate.device) != "cpu" or penalty.gate.requires_grad:
        return _window_below(tau, penalty, lengths)
    from nmtflex.kernels import windows

    start, stop = torch.empty_like(lengths), torch.empty_like(lengths)
    kind = penalty.gate.numpy().dtype.type
    windows.below(
        kind(min(tau, torch.finfo(penalty.gate.dtype).max)),
        penalty.gate.numpy(),
        penalty.focus.detach().numpy(),
        kind(2 * penalty.sigma**2),
        lengths.numpy(),
        start.numpy(),
        stop.numpy(),
    )
    return Window(start, stop)


def _window_below(tau: float, penalty: Penalty, lengths: Tensor) -> Window:
    """Do in PyTorch what ``window_below`` says.

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
    # Clamped as whole numbers: a NaN of broken weights shall end in the context, not a crash.
    low, high = low.long().clamp(min=0), torch.minimum(high.long(), last)
    nearest = torch.minimum((focus - 0.5).ceil().long().clamp(min=0), last)
    none = low > high
    return Window(torch.where(none, nearest, low), torch.where(none, nearest, high) + 1)
