"""Sublayers of residual layers in 8-bit integers.

Legend: N hypotheses, D units.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from nmtflex.layers.feed_forward import FeedForward
from nmtflex.layers.residual import Residual
from nmtflex.layers.ssru import Ssru, State
from nmtflex.layers.sublayers import Sublayers
from nmtflex.ops.linear.packed import Array, array
from nmtflex.ops.linear.stages import Past


class Int8FeedForward(Sublayers):
    """A feed-forward sublayer.

    Args:
        around: The residual connection, in evaluation mode.
        layer: The feed-forward layer, whose products are in 8 bits.
    """

    def __init__(self, around: Residual, layer: FeedForward) -> None:
        super().__init__(layer.inner.in_features)
        self.feed(around, layer)

    def __call__(self, x: Tensor) -> Tensor:
        """Return the result [.., D] of x [.., D]."""
        rows = array(x.flatten(0, -2))
        return torch.from_numpy(self.program.run(rows, _nothing(rows)).x).view(x.shape)


class Int8Ssru(Sublayers):
    """An SSRU sublayer.

    Args:
        around: The residual connection, in evaluation mode.
        layer: The SSRU, whose product is in 8 bits.
    """

    def __init__(self, around: Residual, layer: Ssru) -> None:
        super().__init__(len(layer.bias))
        self.mix(around, layer)

    def __call__(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Advance by one step: [N, D] to [N, D], and the new state."""
        done = self.program.run(array(x), Past(array(state[0])[:, None]))
        return torch.from_numpy(done.x), (torch.from_numpy(done.after[:, 0]),)


def _nothing(rows: Array) -> Past:
    return Past(np.empty((len(rows), 0, rows.shape[1]), rows.dtype))
