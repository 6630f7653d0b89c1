"""All layers of a layered decoder, a step in one call.

For layers with global attention, or none, in 8 bits or in float32. Legend: N hypotheses, D units, h
heads, S source positions, T steps so far, L layers, R rows of a cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from nmtflex.attention import Glimpse, GlobalAttention, Heads, State, Trace
from nmtflex.attention.heads import HeadMemory
from nmtflex.attention.scores import DotScore
from nmtflex.layers.ssru import Ssru
from nmtflex.layers.sublayers import Sublayers
from nmtflex.model.decoders.layered import DecoderLayer
from nmtflex.ops.linear.packed import Array, array
from nmtflex.ops.linear.stage_loops import ATTEND, Source
from nmtflex.ops.linear.stages import Past


class FusedSource:
    """What a batch's steps attend to, laid out for ``FusedLayers`` when it is first needed.

    Args:
        memories: Of the attending layers.
        heads: h.
        scale: Of the scores.
        layers: L, of self-attention.
        size: D.
    """

    def __init__(
        self, memories: Sequence[HeadMemory], heads: int, scale: float, layers: int, size: int
    ) -> None:
        self._memories, self._heads, self._scale = memories, heads, scale
        self._cache = np.empty((layers, 0, 2 * size), np.float32)
        self._count = 0

    @cached_property
    def arrays(self) -> Source:
        """All layers' keys and values, one after another."""
        sources = [memory.inner for memory in self._memories]
        return Source(
            np.stack([array(source.keys) for source in sources]),
            np.stack([array(source.values) for source in sources]),
            array(sources[0].lengths),
            np.arange(self._memories[0].sentences),
            self._heads,
            self._scale,
        )

    def make_room(self, count: int) -> tuple[Array, Tensor]:
        """Return the cache [L, R, 2 D] with room for ``count`` hypotheses, and their rows [N]."""
        before, self._count = self._count, self._count + count
        layers, room, width = self._cache.shape
        if self._count > room:
            cache = np.empty((layers, 2 * self._count, width), np.float32)
            cache[:, :before] = self._cache[:, :before]
            self._cache = cache
        return self._cache, torch.arange(before, self._count)


class FusedLayers(Sublayers):
    """The layers of a decoder, whose weights will not change.

    Args:
        layers: From the bottom; see ``suits``.
        size: D.
    """

    def __init__(self, layers: Sequence[DecoderLayer], size: int) -> None:
        super().__init__(size)
        self._size = size
        self._looking_back = 0  # layers of self-attention
        attending = 0
        for place, layer in enumerate(layers):
            if isinstance(layer.mixer, Ssru):
                self.mix(layer.around_mixer, layer.mixer, place)
            else:
                self.look_back(layer.around_mixer, layer.mixer, place)
                self._looking_back += 1
            if isinstance(heads := layer.attention, Heads):
                self.enter(layer.around_attention, heads.query, ATTEND, attending)
                self.leave(layer.around_attention, heads.output)
                self._heads, self._scale = heads.heads, _scale(heads)
                attending += 1
            if layer.feed_forward is not None:
                self.feed(layer.around_feed_forward, layer.feed_forward)

    def prepare(self, memories: Sequence[HeadMemory]) -> FusedSource:
        """Return what a batch's steps attend to, of the memories of the attending layers."""
        return FusedSource(memories, self._heads, self._scale, self._looking_back, self._size)

    def __call__(
        self,
        x: Tensor,
        states: Sequence[State],
        batch: FusedSource,
        rows: Tensor | None,
        trace: bool,
    ) -> tuple[Tensor, State, list[Glimpse]]:
        """Advance all layers by one step.

        Args:
            x: [N, D], what the first layer reads.
            states: Of the layers' mixers: of SSRUs [N, D], and of self-attention [N, T].
            batch: From ``prepare``.
            rows: [N], the sentence of each hypothesis; None: one each.
            trace: Whether to return what was attended to.

        Returns:
            Output [N, D], the new states, and a trace for each attending layer if asked for.
        """
        source = batch.arrays
        if rows is not None:
            source = source._replace(rows=array(rows))
        if self._looking_back:
            cache, added = batch.make_room(len(x))
            places = torch.cat([states[0][0], added.unsqueeze(1)], dim=1)
            past = Past(np.empty((0, *x.shape), np.float32), cache, places.numpy())
            done = self.program.run(array(x), past, source)
            after: State = (places,) * self._looking_back
        else:
            past = Past(np.stack([array(part) for (part,) in states]))
            done = self.program.run(array(x), past, source)
            after = tuple(map(torch.from_numpy, done.after))
        seen = []
        if trace:
            lengths = torch.from_numpy(source.lengths[source.rows]).expand(source.heads, -1).t()
            for weights in map(torch.from_numpy, done.weights):
                look = Trace(lengths, weights.transpose(0, 1))
                seen.append(Glimpse(x[:, :0], (), None, look))
        return torch.from_numpy(done.x), after, seen


def suits(layers: Sequence[DecoderLayer]) -> bool:
    """Whether those layers that attend do so globally, by dot products, and at least one does."""
    attentions = [layer.attention for layer in layers if layer.attention is not None]
    return bool(attentions) and all(map(_is_dot, attentions))


def _is_dot(attention: nn.Module) -> bool:
    return (
        isinstance(attention, Heads)
        and isinstance(attention.mechanism, GlobalAttention)
        and isinstance(attention.mechanism.score, DotScore)
    )


def _scale(heads: Heads) -> float:
    """Return the scale of the scores, with which dot products are multiplied."""
    return float(cast("GlobalAttention", heads.mechanism).score.scale)
