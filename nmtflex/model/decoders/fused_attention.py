"""Attention of all layers of a decoder inside one call.

Legend: N hypotheses, K attending layers, h heads, A units of a head, B sentences, S source
positions or slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from nmtflex.attention import Glimpse, State
from nmtflex.attention.heads import HeadMemory
from nmtflex.model.decoders.inside import Inside, Look, Parts, inside
from nmtflex.ops.linear.looking import Seen, Source
from nmtflex.ops.linear.packed import Array, array
from nmtflex.ops.linear.stages import NOTHING_SEEN, NOWHERE


class Sources(NamedTuple):
    """A batch's source, for all attending layers."""

    memories: tuple[HeadMemory, ...]  # of each layer
    source: Source  # the same numbers as a call reads them


class FusedAttention:
    """What the attending layers of a decoder do inside a call; nothing if one must be outside.

    Args:
        attentions: Of the attending layers, from the bottom.
    """

    def __init__(self, attentions: Sequence[nn.Module]) -> None:
        found = [inside(attention) for attention in attentions]
        layers = [own for own in found if own is not None]
        self.layers: list[Inside] = layers if len(layers) == len(found) else []
        self._tracked = bool(self.layers) and self.layers[0].tracked

    def prepare(self, memories: Sequence[HeadMemory]) -> Sources:
        """Lay out a batch's source, so that ``memories`` and the call read the same numbers."""
        if not self.layers:
            return Sources(tuple(memories), NOWHERE)
        inner = [memory.inner for memory in memories]
        found = [own.lay_out(memory) for own, memory in zip(self.layers, inner, strict=True)]
        layers = zip(*(layout.parts for layout in found), strict=True)
        together = Parts(*(torch.stack(list(parts)) for parts in layers))
        shared = tuple(
            memory._replace(inner=own.replace(memory.inner, Parts(*parts)))
            for own, memory, *parts in zip(self.layers, memories, *together, strict=True)
        )
        lengths, heads = found[0].lengths, len(found[0].lengths) // memories[0].sentences
        numbers = self.layers[0].scale, found[0].reach, self.layers[0].spread
        keys, values, sums = map(array, together)
        arrays = keys, values, sums, array(lengths), np.empty(0, np.int64)
        return Sources(shared, Source(*arrays, heads, *map(np.float32, numbers)))

    def begin(self, source: Source, states: Sequence[State], words: Tensor, trace: bool) -> Seen:
        """Return what a step reads beside the source, and room for its results.

        Args:
            source: From ``prepare``, with the hypotheses' sentences.
            states: Of each layer: [N, h] at the start, later [N, K, h] of all layers.
            words: [N, K F], what words contribute to the gates.
            trace: Whether weights are wanted.
        """
        if not self.layers:
            return NOTHING_SEEN
        layers, heads, count = len(source.keys), source.heads, len(source.rows)
        before = np.empty((count, layers, heads), np.float32)
        if self._tracked:
            before = _together([state for (state,) in states])
        after, gates = np.empty_like(before), np.empty_like(before)
        windows = np.empty((*before.shape, 2), np.int64)
        length = source.keys.shape[2] if trace else 0
        weights = np.empty((layers, heads, count, length), np.float32)
        return Seen(array(words), before, after, gates, windows, weights)

    def end(self, sources: Sources, rows: Array, seen: Seen, trace: bool) -> list[Glimpse]:
        """Return what each layer has seen, without its context; none if nothing is needed of it."""
        if not self.layers or not (trace or self._tracked):
            return []
        state = (torch.from_numpy(seen.after),) if self._tracked else ()
        nothing = torch.empty(len(rows), 0)
        if not trace:
            return [Glimpse(nothing, state)] * len(self.layers)
        lengths = torch.from_numpy(sources.source.lengths[rows])
        return [
            Glimpse(nothing, state, None, own.trace(memory.inner, look))
            for own, memory, look in zip(
                self.layers, sources.memories, _looks(seen, lengths, rows), strict=True
            )
        ]


def _together(states: Sequence[Tensor]) -> Array:
    """Return the states of all layers, [N, K, h] in float32."""
    first = states[0]
    return array((first if first.dim() == 3 else torch.stack(list(states), dim=1)).float())


def _looks(seen: Seen, lengths: Tensor, rows: Array) -> list[Look]:
    """Return what each layer has seen in sentences of ``lengths`` [N], the same for all heads."""
    _, before, after, gates, windows, weights = map(torch.from_numpy, seen)
    each = lengths.unsqueeze(1).expand(-1, weights.shape[1])
    return [
        Look(
            weights[at].transpose(0, 1),
            gates[:, at],
            before[:, at],
            after[:, at],
            windows[:, at],
            each,
            torch.from_numpy(rows),
        )
        for at in range(len(weights))
    ]
