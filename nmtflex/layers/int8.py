"""Sublayers of residual layers in 8-bit integers: norm, products and residual sum in few passes.

Legend: N hypotheses, D units.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from nmtflex.layers.feed_forward import FeedForward
from nmtflex.layers.linear import Product
from nmtflex.layers.residual import Residual
from nmtflex.layers.ssru import Ssru, State
from nmtflex.ops.linear.int8 import Array, Int8, array
from nmtflex.ops.linear.stage_loops import ADD, QUANTIZE, RELU, SSRU
from nmtflex.ops.linear.stages import Program


class Sublayers:
    """Residual sublayers one after another, whose products are in 8 bits and will not change.

    Args:
        size: D.
    """

    def __init__(self, size: int) -> None:
        self.program = Program(size)

    def feed(self, around: Residual, layer: FeedForward) -> None:
        """Add a feed-forward sublayer."""
        self.enter(around, layer.inner, RELU)
        self.leave(around, layer.outer)

    def mix(self, around: Residual, layer: Ssru, place: int = 0) -> None:
        """Add an SSRU sublayer, whose state is at ``place`` among the states."""
        self.program.then(QUANTIZE, before(around))
        self.program.multiply(in_8_bits(layer.joint))
        self.program.then(SSRU, after(around), array(layer.bias), place)

    def enter(self, around: Residual, product: Product, kind: int, place: int = 0) -> None:
        """Add the first product of a sublayer, and the stage that makes something of it."""
        self.program.then(QUANTIZE, before(around))
        self.program.multiply(in_8_bits(product))
        self.program.then(kind, None, array(product.bias), place)

    def leave(self, around: Residual, product: Product) -> None:
        """Add the last product of a sublayer, and the residual connection."""
        self.program.multiply(in_8_bits(product))
        self.program.then(ADD, after(around), array(product.bias))


def before(around: Residual) -> nn.LayerNorm | None:
    """Return the norm of what a sublayer reads."""
    return around.norm if around.pre_norm else None


def after(around: Residual) -> nn.LayerNorm | None:
    """Return the norm of what a sublayer leaves."""
    return None if around.pre_norm else around.norm


def in_8_bits(product: Product) -> Int8:
    """Return the way in which a product is computed."""
    return cast("Int8", product.fast)


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
        return torch.from_numpy(self.program.run(rows, _no_states(rows)).x).view(x.shape)


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
        done = self.program.run(array(x), array(state[0])[None])
        return torch.from_numpy(done.x), (torch.from_numpy(done.after[0]),)


def _no_states(rows: Array) -> Array:
    return np.empty((0, *rows.shape), rows.dtype)
