"""Sublayers of residual layers in 8-bit integers: norm, products and residual sum in few passes.

Legend: M rows, N hypotheses, D units.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from nmtflex.layers.feed_forward import FeedForward
from nmtflex.layers.linear import Product
from nmtflex.layers.residual import Residual
from nmtflex.layers.ssru import Ssru, State
from nmtflex.ops.linear.int8 import Array, Int8, Norm, Rows, array, quantized


class Surround:
    """What surrounds a sublayer; see ``Residual``.

    Args:
        around: In evaluation mode; its weights will not change.
    """

    def __init__(self, around: Residual) -> None:
        norm = around.norm
        self.before = self.after = None
        if around.pre_norm:
            self.before = Norm(array(norm.weight), array(norm.bias), norm.eps)
        else:
            self.after = norm

    def enter(self, x: Array) -> Rows:
        """Return what the sublayer reads, of x [M, D], in 8 bits."""
        return quantized(x, self.before)

    def leave(self, x: Array) -> Tensor:
        """Return the result [M, D] of the sum [M, D]."""
        made = torch.from_numpy(x)
        return made if self.after is None else self.after(made)


class Int8FeedForward:
    """A feed-forward sublayer.

    Args:
        around: The residual connection.
        layer: The feed-forward layer, whose products are in 8 bits.
    """

    def __init__(self, around: Residual, layer: FeedForward) -> None:
        self.around = Surround(around)
        self.inner, self.outer = _product(layer.inner), _product(layer.outer)
        self.inner_bias, self.outer_bias = array(layer.inner.bias), array(layer.outer.bias)

    def __call__(self, x: Tensor) -> Tensor:
        """Return the result [.., D] of x [.., D]."""
        rows = array(x.flatten(0, -2))
        hidden = self.inner.relu(self.around.enter(rows), self.inner_bias)
        made = self.outer.of(hidden, self.outer_bias)
        made += rows
        return self.around.leave(made).view(x.shape)


class Int8Ssru:
    """An SSRU sublayer.

    Args:
        around: The residual connection.
        layer: The SSRU, whose product is in 8 bits.
    """

    def __init__(self, around: Residual, layer: Ssru) -> None:
        self.around = Surround(around)
        self.joint, self.bias = _product(layer.joint), array(layer.bias)

    def __call__(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Advance by one step: [N, D] to [N, D], and the new state."""
        rows, (before,) = array(x), state
        made, after = self.joint.ssru(self.around.enter(rows), self.bias, array(before), rows)
        return self.around.leave(made), (torch.from_numpy(after),)


def _product(product: Product) -> Int8:
    return cast("Int8", product.fast)
