"""All layers of a transformer encoder, in one call between two attentions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from nmtflex.layers.self_attention import Layout
from nmtflex.layers.sublayers import Sublayers
from nmtflex.model.encoders.transformer import EncoderLayer
from nmtflex.ops.linear.packed import array
from nmtflex.ops.linear.stages import Past


class FusedLayers:
    """The layers of an encoder, whose weights will not change.

    Args:
        layers: From the bottom.
        size: H.
    """

    def __init__(self, layers: Sequence[EncoderLayer], size: int) -> None:
        self._attentions = [layer.attention for layer in layers]
        self._between = [Sublayers(size) for _ in range(len(layers) + 1)]
        for layer, below, above in zip(layers, self._between, self._between[1:], strict=False):
            below.project(layer.around_attention, layer.attention)
            above.resume(layer.around_attention, layer.attention)
            if layer.feed_forward is not None:
                above.feed(layer.around_feed_forward, layer.feed_forward)

    def __call__(self, x: Tensor, layout: Layout) -> Tensor:
        """Return [M, H] of real tokens [M, H]."""
        rows = array(x)
        nothing = np.empty((len(rows), 0, rows.shape[1]), np.float32)
        past = Past(nothing, nothing)
        for part, attention in zip(self._between, [*self._attentions, None], strict=True):
            done = part.program.run(rows, past)
            rows = done.x
            if attention is not None:
                contexts = attention.contexts(torch.from_numpy(done.kept), layout)
                past = past._replace(taken=array(contexts))
        return torch.from_numpy(rows)
