"""All layers of a layered decoder, a step in as few calls as possible.

With a mechanism of ``inside`` a step is one call; what another one does comes between two calls. In
8 bits or in float32.

Legend: N hypotheses, D units, T steps so far, L layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from nmtflex.attention import Glimpse, Heads
from nmtflex.attention import State as Parts
from nmtflex.attention.heads import HeadMemory
from nmtflex.layers.ssru import Ssru
from nmtflex.layers.sublayers import Sublayers
from nmtflex.model.decoders.fused_attention import FusedAttention, Sources
from nmtflex.model.decoders.layered import Attending, DecoderLayer
from nmtflex.ops.beam.grow_loops import State
from nmtflex.ops.cache import Cache
from nmtflex.ops.linear.packed import Array, array
from nmtflex.ops.linear.stage_loops import ATTEND, LEAVE, Fixed
from nmtflex.ops.linear.stages import Past


class FusedMemory(NamedTuple):
    """What a batch's steps read."""

    sources: Sources
    cache: Cache  # of all layers of self-attention


class FusedLayers:
    """The layers of a decoder, whose weights will not change.

    Args:
        layers: From the bottom.
        size: D.
        norm: Of the last layer's output, or None.
    """

    def __init__(
        self, layers: Sequence[DecoderLayer], size: int, norm: nn.LayerNorm | None
    ) -> None:
        attentions = [layer.attention for layer in layers if layer.attention is not None]
        self._attention = FusedAttention(attentions)
        self.attends = bool(self._attention.layers)
        self._size, self._count = size, len(layers)
        self._looking_back = sum(not isinstance(layer.mixer, Ssru) for layer in layers)
        self.heads = 1
        self._parts = [Sublayers(size)]  # between two attentions, if these are not inside
        attending = 0
        for place, layer in enumerate(layers):
            if isinstance(layer.mixer, Ssru):
                self._parts[-1].mix(layer.around_mixer, layer.mixer, place)
            else:
                self._parts[-1].look_back(layer.around_mixer, layer.mixer, place)
                self.heads = layer.mixer.heads
            if layer.attention is not None:
                self._add_attention(layer, attending, size)
                attending += 1
            if layer.feed_forward is not None:
                self._parts[-1].feed(layer.around_feed_forward, layer.feed_forward)
        if norm is not None:
            self._parts[-1].program.then(LEAVE, norm)

    @property
    def whole(self) -> bool:
        """Whether a step is one call."""
        return len(self._parts) == 1

    @property
    def fixed(self) -> Fixed:
        """The program of that call."""
        return self._parts[0].program.fixed

    def start(self, most: int) -> State:
        """Return the state before the first step, with room for ``most`` hypotheses."""
        layers = 0 if self._looking_back else self._count
        mixed = np.zeros((most, layers, self._size), np.float32)
        focus = np.zeros((most, len(self._attention.layers), self.heads), np.float32)
        cache = np.empty((0, 2 * self._looking_back * self._size), np.float32)
        nothing = np.empty((most, 0), np.int64)
        return State(mixed, focus, cache, 0, nothing, nothing)

    def parts(self) -> list[tuple[object, str]]:
        """Return the methods that take time, for a stopwatch."""
        return [(part.program, "run") for part in self._parts]

    def _add_attention(self, layer: DecoderLayer, place: int, size: int) -> None:
        """Add an attending sublayer, the one numbered ``place``."""
        if self.attends and isinstance(heads := layer.attention, Heads):
            own = self._attention.layers[place]
            self._parts[-1].enter(layer.around_attention, heads.query, ATTEND, place)
            self._parts[-1].program.attend(own.how, own.network())
            self._parts[-1].leave(layer.around_attention, heads.output)
            self.heads = heads.heads
        else:
            self._parts[-1].show(layer.around_attention)
            self._parts.append(Sublayers(size))
            self._parts[-1].join(layer.around_attention)

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
        cache = Cache(like, self._looking_back)
        sources = self._attention.prepare(memories)
        return sources.memories, FusedMemory(sources, cache)

    def step(
        self,
        x: Tensor,
        states: Sequence[Parts],
        batch: FusedMemory,
        rows: Tensor | None,
        attending: Attending,
        trace: bool,
    ) -> tuple[Tensor, Parts, list[Glimpse]]:
        """Advance all layers by one step.

        Args:
            x: [N, D], what the first layer reads.
            states: Of the layers' mixers: of self-attention [N, T], and of SSRUs at the start
                [N, D] each, later [N, L, D] of all L layers.
            batch: From ``prepare``.
            rows: [N], the sentence of each hypothesis; None: one each.
            attending: What the hypotheses attend with.
            trace: Whether to return what was attended to.

        Returns:
            Output [N, D] after the last norm, the new states, which are one for all layers, and
            what was seen: by each attending layer, or only on request if nothing is needed of it.
        """
        past, after = self._past(x, states, batch)
        of = np.arange(len(x)) if rows is None else array(rows)
        source = batch.sources.source._replace(rows=of, heads=self.heads)
        seen = self._attention.begin(source, attending.states, attending.words, trace)
        done = self._parts[0].program.run(array(x), past, source, seen)
        glimpses = self._attention.end(batch.sources, of, seen, trace)
        for at, part in enumerate(self._parts[1:]):
            glimpses.append(attending.attend(at, torch.from_numpy(done.kept)))
            past = past._replace(taken=array(glimpses[-1].context))
            done = part.program.run(done.x, past, source, seen)
        return torch.from_numpy(done.x), (after,) * self._count, glimpses

    def _past(self, x: Tensor, states: Sequence[Parts], batch: FusedMemory) -> tuple[Past, Tensor]:
        """Return what the steps before have left, and the state after this one."""
        nothing: Array = np.empty((len(x), 0, x.shape[1]), np.float32)
        first = states[0][0]
        if self._looking_back:
            added = batch.cache.make_room(len(x))
            places = torch.cat([first, added.unsqueeze(1)], dim=1)
            return Past(nothing, nothing, batch.cache.rows.numpy(), places.numpy()), places
        together = first if first.dim() == 3 else torch.cat(_all(states), dim=1)
        after = torch.empty_like(together)
        return Past(array(together), after.numpy()), after


def _all(states: Sequence[Parts]) -> list[Tensor]:
    """Return the states of single layers, each [N, D], as [N, 1, D]."""
    return [state.unsqueeze(1) for (state,) in states]
