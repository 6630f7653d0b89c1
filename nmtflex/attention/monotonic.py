"""Hard monotonic attention: one position, found by scanning the source from left to right.

Legend: B sentences, S source positions, T steps, N hypotheses, A units of an energy, H encoder
units, Q decoder units.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from nmtflex.attention.base import (
    UNLIMITED,
    Attention,
    Glimpse,
    Limits,
    Sizes,
    State,
    Trace,
    register,
)
from nmtflex.attention.scores import NormalizedScore, ScoreFunction
from nmtflex.attention.source import exactly, read_source
from nmtflex.config import MonotonicConfig, ScanningConfig
from nmtflex.ops import monotonic, sequence
from nmtflex.ops.attend import Source
from nmtflex.ops.monotonic import Stops


class Track(NamedTuple):
    """What is scanned, of B sentences."""

    source: Source  # its keys are scanned
    v: Tensor  # [A], g v / |v| of the energy


class Reading(NamedTuple):
    """What N hypotheses read where their scans stopped."""

    context: Tensor  # [N, H]
    first: Tensor  # [N], first position read
    computed: Tensor  # [N], scores that reading took, beyond those of the scan
    weights: Tensor | None  # [N, S], if asked for


@register(MonotonicConfig)
class MonotonicAttention(Attention):
    """Hard monotonic attention.

    Raffel et al. (2017), "Online and Linear-Time Attention by Enforcing Monotonic Alignments",
    https://arxiv.org/abs/1704.00784. Step i scans from its last stop t[i-1] on, at first from 0::

        energy(s) = g v / |v| . tanh(W h + U k_s + b) + r                        (section 2.4)
        p(s)      = sigmoid(energy(s))                                           (12)
        t[i]      = the first s >= t[i-1] with p(s) >= 1/2;  c = k_t[i]          (section 2.2)

    Only the energies from t[i-1] to t[i] are computed: at most (S + T) / T a step, in the mean of T
    steps. If no position is chosen, the context is 0. The paper leaves t[i] open then; here the
    scan has passed the end, so later contexts are 0 too, as in the expectation below and in
    TensorFlow's ``BahdanauMonotonicAttention``.

    In training mode the context is expected, with normal noise added to the energies so that clear
    decisions pay (section 2.5), and alpha[-1] = 1 at position 0::

        q[i](s)     = (1 - p(s-1)) q[i](s-1) + alpha[i-1](s)                     (13)
        alpha[i](s) = p(s) q[i](s);  c = sum over s of alpha[i](s) k_s           (14)

    In evaluation mode stops are hard: in decoding, and for given targets too, so that validation
    and ``score`` see what decoding does. No gradient reaches the energies then.

    The weights of a step sum to at most 1. Energies and probabilities are in float32 at least. The
    state is the last stop [N], the source's length once the scan has passed the end; in training
    mode it is alpha [N, S].

    Args:
        sizes: Widths of query, states and keys.
        config: ``energy_bias`` is r at first, ``energy_scale`` g sqrt(A) at first, and
            ``energy_noise`` the noise's standard deviation.
    """

    def __init__(self, sizes: Sizes, config: ScanningConfig) -> None:
        super().__init__()
        self.context_size = sizes.states
        self.energy = NormalizedScore(sizes, config.energy_scale)
        self.r = nn.Parameter(torch.full((1,), config.energy_bias))
        self.noise = config.energy_noise

    def prepare(
        self, states: Tensor, mask: Tensor, limits: Limits = UNLIMITED, keys: Tensor | None = None
    ) -> Any:
        """Project the keys once a sentence; see ``Attention.prepare``."""
        return Track(read_source(self.energy, states, mask, keys), self.energy.normalized())

    def weight_sums(self, length: int) -> tuple[float, float]:
        """Nothing is read after the scan has passed the end."""
        return 0.0, 1.0

    def start(self, states: Tensor) -> State:
        """Return position 0 of each sentence; in training mode its probability, 1."""
        if not self.training:
            return (torch.zeros(len(states), dtype=torch.long, device=states.device),)
        alpha = exactly(states.new_zeros(states.shape[:2]))
        alpha[:, 0] = 1
        return (alpha,)

    def forward(
        self,
        query: Tensor,
        feedback: Tensor,
        memory: Any,
        rows: Tensor | None,
        state: State,
        trace: bool = False,
    ) -> Glimpse:
        """Scan on; see ``Attention.forward``."""
        (before,), queries = state, query.unsqueeze(1)
        lengths = memory.source.lengths_of(rows)
        if self.training:
            context, weights, alpha = self._expect(queries, memory, rows, before)
            seen = Trace(lengths, weights[:, 0].detach()) if trace else None
            return Glimpse(context.squeeze(1), (alpha[:, 0],), trace=seen)
        stops = Stops(*(part.squeeze(1) for part in self._scan(queries, memory, rows, before)))
        read = self._read_stops(stops, query, memory, rows, trace)
        seen = _trace(before, stops, read, lengths) if trace else None
        return Glimpse(read.context, (stops.position,), trace=seen)

    def sequence(
        self, queries: Tensor, feedback: Tensor, memory: Any, state: State
    ) -> tuple[Tensor, Tensor | None]:
        """Scan in all steps, which pass on only their stops; see ``Attention.sequence``."""
        (before,), size = state, queries.shape[:2]
        if self.training:
            return self._expect(queries, memory, None, before)[0], None
        stops = Stops(*(part.flatten() for part in self._scan(queries, memory, None, before)))
        rows = torch.arange(size[0], device=queries.device).repeat_interleave(size[1])
        read = self._read_stops(stops, queries.flatten(0, 1), memory, rows, False)
        return read.context.view(*size, -1), None

    def _expect(
        self, queries: Tensor, memory: Any, rows: Tensor | None, before: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return contexts [N, T, H], weights [N, T, S] and alpha [N, T, S]."""
        (keys, _, lengths), v = self._track(memory)
        if rows is not None:  # never in training, which has one hypothesis a sentence
            keys, lengths = keys[rows], lengths[rows]
        energies = sequence.scores(in_steps(self.energy, queries), keys, lengths, v) + self.r
        if self.noise > 0:
            energies = energies + self.noise * torch.randn_like(energies)
        alpha = monotonic.expected(energies, before, lengths)
        weights = self._spread(alpha, queries, memory, rows)
        values = memory.source.values if rows is None else memory.source.values[rows]
        return sequence.contexts(weights, values, lengths), weights, alpha

    def _scan(self, queries: Tensor, memory: Any, rows: Tensor | None, before: Tensor) -> Stops:
        """Return where the scans of queries [N, T, Q] stop."""
        (keys, _, lengths), v = self._track(memory)
        lengths = lengths if rows is None else lengths[rows]
        query = in_steps(self.energy, queries)
        return monotonic.scan(query, v, self.r, keys, lengths, rows, before)

    def _read_stops(
        self, stops: Stops, query: Tensor, memory: Any, rows: Tensor | None, trace: bool
    ) -> Reading:
        """Read where the scans of N hypotheses stopped, and nothing after a sentence's end."""
        last = memory.source.lengths_of(rows) - 1
        read = self._read(torch.minimum(stops.position, last), query, memory, rows, trace)
        none, chosen = stops.chosen == 0, stops.chosen.unsqueeze(1)

        def kept(part: Tensor) -> Tensor:
            return (part * chosen.to(part.dtype)).masked_fill(none.unsqueeze(1), 0)

        weights = None if read.weights is None else kept(read.weights)
        return Reading(
            kept(read.context),
            torch.where(none, stops.position, read.first),
            read.computed.masked_fill(none, 0),
            weights,
        )

    def _track(self, memory: Any) -> Track:
        """Return what is scanned."""
        track: Track = memory
        return track

    def _spread(self, alpha: Tensor, queries: Tensor, memory: Any, rows: Tensor | None) -> Tensor:
        """Return the weights [N, T, S] of stops with the probabilities ``alpha`` [N, T, S]."""
        return alpha

    def _read(
        self, stop: Tensor, query: Tensor, memory: Any, rows: Tensor | None, trace: bool
    ) -> Reading:
        """Read at the positions ``stop`` [N]: the state there."""
        values = memory.source.values
        count, length = values.shape[:2]
        of = torch.arange(count, device=stop.device) if rows is None else rows
        context = values.flatten(0, 1).index_select(0, of * length + stop)
        weights = functional.one_hot(stop, length).to(exactly(context).dtype) if trace else None
        return Reading(context, stop, torch.zeros_like(stop), weights)


def in_steps(score: ScoreFunction, queries: Tensor) -> Tensor:
    """Return ``score.queries`` of queries [N, T, Q], which takes them one by one: [N, T, A]."""
    return score.queries(queries.flatten(0, 1)).view(*queries.shape[:2], -1)


def _trace(before: Tensor, stops: Stops, read: Reading, lengths: Tensor) -> Trace:
    """Return what a step looked at, which began at ``before`` [N]."""
    end = torch.minimum(stops.position + 1, lengths)
    first = torch.minimum(before, read.first)
    computed = end - before + read.computed
    return Trace(computed, read.weights, None, stops.position, first, end)
