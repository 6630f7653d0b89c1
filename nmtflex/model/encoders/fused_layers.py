"""All layers of a transformer encoder in one call."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nmtflex.layers.sublayers import Sublayers
from nmtflex.model.encoders.transformer import EncoderLayer
from nmtflex.ops.linear.packed import array
from nmtflex.ops.linear.stage_loops import LEAVE


class FusedLayers:
    """The layers of an encoder, whose weights will not change.

    Args:
        layers: From the bottom.
        size: H.
        norm: Of the last layer's output, or None.
    """

    def __init__(
        self, layers: Sequence[EncoderLayer], size: int, norm: nn.LayerNorm | None
    ) -> None:
        attention = layers[0].attention
        self._heads, self._reach = attention.heads, attention.reach
        sublayers = Sublayers(size)
        for layer in layers:
            sublayers.look_around(layer.around_attention, layer.attention)
            if layer.feed_forward is not None:
                sublayers.feed(layer.around_feed_forward, layer.feed_forward)
        if norm is not None:
            sublayers.program.then(LEAVE, norm)
        self._program = sublayers.program

    def __call__(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Return [M, H] of real tokens [M, H], of sentences of lengths [B]."""
        rows = self._program.run_sentences(array(x), self._heads, self._reach, array(lengths))
        return torch.from_numpy(rows)
