"""Recurrent cells and a gate in plain PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from nmtflex.ops.tensors import precise


def lstm(product: Tensor, summand: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Advance an LSTM by one step; see ``nmtflex.ops.recurrent``."""
    dtype = precise(product.dtype)
    i, f, g, o = (product.to(dtype) + summand).chunk(4, dim=1)
    c = torch.sigmoid(f) * c.to(dtype) + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def ssru(gates: Tensor, candidates: Tensor, c: Tensor) -> Tensor:
    """Walk an SSRU through all steps; see ``nmtflex.ops.recurrent``."""
    dtype = precise(gates.dtype)
    forget, c = torch.sigmoid(gates.to(dtype)), c.to(dtype)
    added = (1 - forget) * candidates.to(dtype)
    steps = []
    for f, summand in zip(forget.unbind(1), added.unbind(1), strict=True):
        c = f * c + summand
        steps.append(c)
    return torch.stack(steps, dim=1)


def gate(state: Tensor, word: Tensor | None, v: Tensor, bias: Tensor | None) -> Tensor:
    """Return a gate; see ``nmtflex.ops.recurrent``."""
    seen = torch.tanh(state if word is None else state + word)
    total = functional.linear(seen, v.unsqueeze(0), bias).squeeze(1)
    return torch.sigmoid(total.to(precise(total.dtype)))
