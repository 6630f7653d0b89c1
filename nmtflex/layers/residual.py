"""What surrounds every sublayer of a transformer: residual connection, layer norm and dropout."""

from __future__ import annotations

from torch import Tensor, nn

from nmtflex.layers.dropout import Dropout


class Residual(nn.Module):
    """x + f(x) around a sublayer f, with layer norm.

    Vaswani et al. (2017), section 3.1, normalise the sum; pre-norm (Xiong et al. 2020,
    https://arxiv.org/abs/2002.04745) normalises what the sublayer reads::

        norm(x + dropout(f(x)))        post-norm
        x + dropout(f(norm(x)))        pre-norm

    A sublayer is called between ``enter`` and ``leave``, since some return more than a tensor.

    Args:
        size: D.
        pre_norm: Whether the norm comes first.
        dropout: Share of the sublayer's outputs dropped in training.
    """

    def __init__(self, size: int, pre_norm: bool, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.dropout = Dropout(dropout)
        self.pre_norm = pre_norm

    def enter(self, x: Tensor) -> Tensor:
        """Return what the sublayer reads, of x [.., D]."""
        return self.norm(x) if self.pre_norm else x

    def leave(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the result [.., D] of x and what the sublayer made of it."""
        x = x + self.dropout(y)
        return x if self.pre_norm else self.norm(x)
