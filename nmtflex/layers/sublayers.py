"""Sublayers of residual layers: norm, products and residual sum in few passes."""

from __future__ import annotations

from typing import cast

from torch import nn

from nmtflex.layers.feed_forward import FeedForward
from nmtflex.layers.linear import Product
from nmtflex.layers.residual import Residual
from nmtflex.layers.self_attention import SelfAttention
from nmtflex.layers.ssru import Ssru
from nmtflex.ops.linear.packed import Packed, array
from nmtflex.ops.linear.stage_loops import ADD, ENTER, JOIN, KEEP, RELU, SELF, SHOW, SSRU, TAKE
from nmtflex.ops.linear.stages import Program


class Sublayers:
    """Residual sublayers one after another, whose weights will not change.

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
        self.program.then(ENTER, before(around))
        self.program.multiply(multiplier(layer.joint))
        self.program.then(SSRU, after(around), array(layer.bias), place)

    def look_back(self, around: Residual, layer: SelfAttention, place: int) -> None:
        """Add a sublayer of masked self-attention, whose cache is at ``place`` among the caches."""
        self.enter(around, layer.inputs, SELF, place)
        self.leave(around, layer.output)

    def look_around(self, around: Residual, layer: SelfAttention) -> None:
        """Add a sublayer of self-attention to all tokens of a sentence."""
        self.enter(around, layer.inputs, KEEP)
        self.program.then(TAKE, None)
        self.leave(around, layer.output)

    def show(self, around: Residual) -> None:
        """Keep what a sublayer reads that is computed elsewhere."""
        self.program.then(SHOW, before(around))

    def join(self, around: Residual) -> None:
        """Take what such a sublayer has made, and add the residual connection."""
        self.program.then(JOIN, after(around))

    def enter(self, around: Residual, product: Product, kind: int, place: int = 0) -> None:
        """Add the first product of a sublayer, and the stage that makes something of it."""
        self.program.then(ENTER, before(around))
        self.program.multiply(multiplier(product))
        self.program.then(kind, None, array(product.bias), place)

    def leave(self, around: Residual, product: Product) -> None:
        """Add the last product of a sublayer, and the residual connection."""
        self.program.multiply(multiplier(product))
        self.program.then(ADD, after(around), array(product.bias))


def before(around: Residual) -> nn.LayerNorm | None:
    """Return the norm of what a sublayer reads."""
    return around.norm if around.pre_norm else None


def after(around: Residual) -> nn.LayerNorm | None:
    """Return the norm of what a sublayer leaves."""
    return None if around.pre_norm else around.norm


def multiplier(product: Product) -> Packed:
    """Return how a product is computed, for which ``model.inference`` has laid its weight out."""
    return cast("Packed", product.fast)
