"""A recurrent cell and a gate in plain PyTorch."""

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


def gate(state: Tensor, word: Tensor | None, v: Tensor, bias: Tensor | None) -> Tensor:
    """Return a gate; see ``nmtflex.ops.recurrent``."""
    seen = torch.tanh(state if word is None else state + word)
    total = functional.linear(seen, v.unsqueeze(0), bias).squeeze(1)
    return torch.sigmoid(total.to(precise(total.dtype)))
