"""The feed-forward layer of a transformer."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmtflex.layers.dropout import Dropout
from nmtflex.layers.linear import Product, glorot
from nmtflex.layers.residual import Residual


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


class Feeding(nn.Module):
    """Base of layers whose last sublayer is a feed-forward layer, or that have none."""

    feed_forward: FeedForward | None
    around_feed_forward: Residual

    def feed(self, x: Tensor) -> Tensor:
        """Return the result [.., D] of the feed-forward sublayer, or x if there is none."""
        if self.feed_forward is None:
            return x
        y = self.feed_forward(self.around_feed_forward.enter(x))
        return self.around_feed_forward.leave(x, y)
