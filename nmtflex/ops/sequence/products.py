"""Attention as products of matrices, on every device. Legend as in ``nmtflex.ops.sequence``."""

from __future__ import annotations

import torch
from torch import Tensor

from nmtflex.ops.tensors import precise


def dot(query: Tensor, keys: Tensor, lengths: Tensor) -> Tensor:
    """Return q . k; see ``nmtflex.ops.sequence.scores``."""
    exact = precise(keys.dtype)
    with torch.autocast(keys.device.type, enabled=False):
        return query.to(exact) @ real(keys, lengths).to(exact).transpose(1, 2)


def contexts(weights: Tensor, values: Tensor, lengths: Tensor) -> Tensor:
    """Sum values; see ``nmtflex.ops.sequence.contexts``."""
    with torch.autocast(values.device.type, enabled=False):
        return weights.to(values.dtype) @ real(values, lengths)


def real(memory: Tensor, lengths: Tensor) -> Tensor:
    """Return a memory [B, S, D] with 0 beyond each sentence's length."""
    inside = torch.arange(memory.shape[1], device=memory.device) < lengths.unsqueeze(1)
    return memory.masked_fill(~inside.unsqueeze(2), 0)
