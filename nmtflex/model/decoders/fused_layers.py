"""All layers of a layered decoder, a step in one call.

For layers with global attention, or none, in 8 bits or in float32. Legend: N hypotheses, D units, h
heads, S source positions, A units of a head, T steps so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from nmtflex.attention import Glimpse, GlobalAttention, Heads, State, Trace
from nmtflex.attention.heads import HeadMemory
from nmtflex.attention.scores import DotScore
from nmtflex.layers.ssru import Ssru
from nmtflex.layers.sublayers import Sublayers
from nmtflex.model.decoders.layered import DecoderLayer
from nmtflex.ops.cache import Cache
from nmtflex.ops.linear.packed import array
from nmtflex.ops.linear.stage_loops import ATTEND, LEAVE, Source
from nmtflex.ops.linear.stages import Past


class FusedMemory(NamedTuple):
    """What a batch's steps attend to."""

    keys: Tensor  # [K, h B, S, A], of K attending layers
    values: Tensor  # [K, h B, S, A]
    lengths: Tensor  # [h B]
    cache: Cache  # of all layers of self-attention


class FusedLayers(Sublayers):
    """The layers of a decoder, whose weights will not change.

    Args:
        layers: From the bottom; see ``suits``.
        size: D.
        norm: Of the last layer's output, or None.
    """

    def __init__(
        self, layers: Sequence[DecoderLayer], size: int, norm: nn.LayerNorm | None
    ) -> None:
        super().__init__(size)
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
        self._layers = len(layers)
        if norm is not None:
            self.program.then(LEAVE, norm)

    def prepare(
        self, memories: Sequence[HeadMemory], like: Tensor
    ) -> tuple[tuple[HeadMemory, ...], FusedMemory]:
        """Lay out a batch's source.

        Args:
            memories: Of the attending layers.
            like: [B, D].

        Returns:
            The same memories, whose numbers are where the steps read them, and what these read.
        """
        sources = [memory.inner for memory in memories]
        keys = torch.stack([source.keys for source in sources])
        values = torch.stack([source.values for source in sources])
        shared = tuple(
            memory._replace(inner=memory.inner._replace(keys=own_keys, values=own_values))
            for memory, own_keys, own_values in zip(memories, keys, values, strict=True)
        )
        cache = Cache(like, self._looking_back)
        return shared, FusedMemory(keys, values, sources[0].lengths, cache)

    def step(
        self,
        x: Tensor,
        states: Sequence[State],
        batch: FusedMemory,
        rows: Tensor | None,
        trace: bool,
    ) -> tuple[Tensor, State, list[Glimpse]]:
        """Advance all layers by one step.

        Args:
            x: [N, D], what the first layer reads.
            states: Of the layers' mixers: of self-attention [N, T], and of SSRUs at the start
                [N, D] each, later [N, L, D] of all L layers.
            batch: From ``prepare``.
            rows: [N], the sentence of each hypothesis; None: one each.
            trace: Whether to return what was attended to.

        Returns:
            Output [N, D] after the last norm, the new states, which are one for all layers, and a
            trace for each attending layer if asked for.
        """
        keys, values, lengths = (array(part) for part in batch[:3])
        of = np.arange(len(x)) if rows is None else array(rows)
        source = Source(keys, values, lengths, of, self._heads, self._scale)
        if self._looking_back:
            added = batch.cache.make_room(len(x))
            places = torch.cat([states[0][0], added.unsqueeze(1)], dim=1)
            nothing = np.empty((len(x), 0, x.shape[1]), np.float32)
            past = Past(nothing, batch.cache.rows.numpy(), places.numpy())
            done = self.program.run(array(x), past, source)
            after: State = (places,) * self._looking_back
        else:
            first = states[0][0]
            together = first if first.dim() == 3 else torch.cat(_all(states), dim=1)
            done = self.program.run(array(x), Past(array(together)), source)
            after = (torch.from_numpy(done.after),) * self._layers
        seen = []
        if trace:
            each = torch.from_numpy(lengths[of]).expand(self._heads, -1).t()
            for weights in map(torch.from_numpy, done.weights):
                look = Trace(each, weights.transpose(0, 1))
                seen.append(Glimpse(x[:, :0], (), None, look))
        return torch.from_numpy(done.x), after, seen


def _all(states: Sequence[State]) -> list[Tensor]:
    """Return the states of single layers, each [N, D], as [N, 1, D]."""
    return [state.unsqueeze(1) for (state,) in states]


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
