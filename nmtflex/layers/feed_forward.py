"""The feed-forward layer of a transformer."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmtflex.layers.dropout import Dropout
from nmtflex.layers.linear import Product, glorot


class FeedForward(nn.Module):
    """W2 relu(W1 x + b1) + b2; Vaswani et al. (2017), eq. 2.

    Args:
        size: D.
        hidden: Units between.
        dropout: Share of the hidden units dropped in training.
    """

    def __init__(self, size: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.inner = glorot(Product(size, hidden))
        self.outer = glorot(Product(hidden, size))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Return [.., D] of [.., D]."""
        return self.outer(self.dropout(torch.relu(self.inner(x))))
