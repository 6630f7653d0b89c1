"""Dropout."""

from __future__ import annotations

from torch import Tensor, nn

from nmtflex.ops.dropout import dropout


class Dropout(nn.Dropout):
    """In training, sets a share p of all numbers to 0 and divides the others by 1 - p."""

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the shape of ``x``, with gradient."""
        if not self.training:
            return x
        if not 0 < self.p < 1:
            return super().forward(x)
        return dropout(x, self.p)
