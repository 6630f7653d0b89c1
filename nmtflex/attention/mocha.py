"""Monotonic chunkwise attention: a softmax over the positions where a scan stops.

Legend as in ``nmtflex.attention.monotonic``.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from nmtflex.attention.base import UNLIMITED, Limits, Sizes, register
from nmtflex.attention.monotonic import MonotonicAttention, Reading, Track, in_steps
from nmtflex.attention.scores import NormalizedScore
from nmtflex.attention.source import read_source
from nmtflex.config import MochaConfig
from nmtflex.ops import monotonic, sequence
from nmtflex.ops.attend import Source, Window, attend


class Chunks(NamedTuple):
    """What is read, of B sentences, and what is scanned."""

    source: Source  # its keys are scored in chunks
    v: Tensor  # [A], g v / |v| of the chunk's energy
    track: Track


@register(MochaConfig)
class MochaAttention(MonotonicAttention):
    """Monotonic chunkwise attention ("MoChA").

    Chiu and Raffel (2018), "Monotonic Chunkwise Attention", https://arxiv.org/abs/1712.05382. The
    scan of ``MonotonicAttention`` finds the stop t; a softmax reads the w positions that end
    there, by an energy of its own::

        u(s) = g' v' / |v'| . tanh(W' h + U' k_s + b')
        a(s) = exp(u(s)) / sum over s' of exp(u(s'))      for t - w < s <= t, else 0
        c    = sum over s of a(s) k_s

    In training mode, with the probabilities alpha of the stops::

        beta(s) = sum over t from s to s + w - 1 of alpha(t) exp(u(s)) / Z(t)
        Z(t)    = sum over s' from t - w + 1 to t of exp(u(s'))

    The energy u has no r, which a softmax cannot feel. Where no position is chosen, nothing is
    read and u is not counted.

    Args:
        sizes: Widths of query, states and keys.
        config: ``chunk`` is w, in source tokens; the rest as in ``MonotonicAttention``.
    """

    def __init__(self, sizes: Sizes, config: MochaConfig) -> None:
        super().__init__(sizes, config)
        self.score = NormalizedScore(sizes, config.energy_scale)
        self.width = config.chunk

    def prepare(
        self, states: Tensor, mask: Tensor, limits: Limits = UNLIMITED, keys: Tensor | None = None
    ) -> Chunks:
        """Project both kinds of keys once a sentence; see ``Attention.prepare``."""
        source = read_source(self.score, states, mask, keys)
        track: Track = super().prepare(states, mask, limits, keys)
        return Chunks(source, self.score.normalized(), track)

    def _track(self, memory: Chunks) -> Track:
        return memory.track

    def _spread(
        self, alpha: Tensor, queries: Tensor, memory: Chunks, rows: Tensor | None
    ) -> Tensor:
        (keys, _, lengths), v, _ = memory
        if rows is not None:
            keys, lengths = keys[rows], lengths[rows]
        scores = sequence.scores(in_steps(self.score, queries), keys, lengths, v)
        return monotonic.chunked(alpha, scores, lengths, self.width)

    def _read(
        self, stop: Tensor, query: Tensor, memory: Chunks, rows: Tensor | None, trace: bool
    ) -> Reading:
        """Attend to the chunk that ends at ``stop`` [N]."""
        first, end = (stop - self.width + 1).clamp(min=0), stop + 1
        query = self.score.queries(query)
        context, _, weights, _ = attend(
            query, memory.source, rows, memory.v, Window(first, end), trace=trace
        )
        return Reading(context, first, end - first, weights)
