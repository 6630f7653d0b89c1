"""Scores, the walk of the focus and contexts in plain PyTorch, the specification of the others."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from nmtflex.ops.attend import Penalty
from nmtflex.ops.attend.reference import window_below
from nmtflex.ops.tensors import precise


def scores(query: Tensor, keys: Tensor, lengths: Tensor, v: Tensor | None) -> Tensor:
    """Return v . tanh(q + k) or q . k; see ``nmtflex.ops.sequence.scores``."""
    exact = precise(keys.dtype)
    query, keys = query.to(exact), _real(keys, lengths).to(exact)
    if v is None:
        with torch.autocast(keys.device.type, enabled=False):
            return query @ keys.transpose(1, 2)
    made = (torch.tanh(query.unsqueeze(2) + keys.unsqueeze(1)) * v.to(exact)).sum(3)
    return _real(made.transpose(1, 2), lengths).transpose(1, 2)


def walk(
    scores: Tensor, gate: Tensor, focus: Tensor, lengths: Tensor, sigma: float, tau: float
) -> tuple[Tensor, Tensor]:
    """Weigh step by step; see ``nmtflex.ops.sequence.walk``."""
    exact = precise(scores.dtype)
    scores, gate, focus = scores.to(exact), gate.to(exact), focus.to(exact)
    positions = torch.arange(scores.shape[2], device=scores.device).unsqueeze(0)  # [1, S]
    inside = positions < lengths.unsqueeze(1)  # [B, S]
    weights, focuses = [], []
    for score, g in zip(scores.unbind(1), gate.unbind(1), strict=True):
        penalty = Penalty(g, focus, sigma)
        if tau < math.inf:
            start, stop = (bound.unsqueeze(1) for bound in window_below(tau, penalty, lengths))
            inside = (start <= positions) & (positions < stop)
        # Filled before and after, so that NaN stays where it is, forward and backward.
        score = score.masked_fill(~inside, 0) - penalty.at(positions)
        weight = torch.softmax(score.masked_fill(~inside, -torch.inf), dim=1)
        weight = weight.masked_fill(~inside, 0)
        focus = (weight * positions).sum(1)
        weights.append(weight)
        focuses.append(focus)
    return torch.stack(weights, dim=1), torch.stack(focuses, dim=1)


def contexts(weights: Tensor, values: Tensor, lengths: Tensor) -> Tensor:
    """Sum values; see ``nmtflex.ops.sequence.contexts``."""
    with torch.autocast(values.device.type, enabled=False):
        return weights.to(values.dtype) @ _real(values, lengths)


def _real(memory: Tensor, lengths: Tensor) -> Tensor:
    """Return a memory [B, S, D] with 0 beyond each sentence's length."""
    inside = torch.arange(memory.shape[1], device=memory.device) < lengths.unsqueeze(1)
    return memory.masked_fill(~inside.unsqueeze(2), 0)
