"""Dropout in plain PyTorch."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def dropout(x: Tensor, p: float) -> Tensor:
    """Drop a share p; see ``nmtflex.ops.dropout``."""
    return functional.dropout(x, p)
