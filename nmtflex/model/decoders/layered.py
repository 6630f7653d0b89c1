"""Decoders of residual layers: SSRU or masked self-attention, attention, feed-forward.

Legend as in ``base``; the state is the position of the step [N], then the parts of the layers'
mixers from the bottom up, then those of their attention mechanisms, [N, h, ...] each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, cast

import torch
from torch import Tensor, nn

from nmtflex.attention import UNLIMITED, Attention, Glimpse, Limits, Reuse, State, Trace
from nmtflex.attention.heads import Heads, shown
from nmtflex.attention.marking import unmarked
from nmtflex.layers.dropout import Dropout
from nmtflex.layers.feed_forward import FeedForward, Feeding
from nmtflex.layers.linear import Linear
from nmtflex.layers.positions import sinusoids
from nmtflex.layers.residual import Residual
from nmtflex.layers.self_attention import CausalSelfAttention
from nmtflex.layers.ssru import Ssru
from nmtflex.model.decoders.base import Decoder, Step, Steps, Words
from nmtflex.model.encoders.base import Encoded
from nmtflex.ops.cache import Cache

Mixer = Ssru | CausalSelfAttention  # what lets a step see the steps before
Attend = Callable[[int, Tensor], Glimpse]  # of the number of an attending layer, and queries [N, D]


class Attending(NamedTuple):
    """What N hypotheses attend with."""

    attend: Attend
    states: Sequence[State]  # of each attending layer
    words: Tensor  # [N, K F], what words contribute to each of K layers


class FastLayers(Protocol):
    """A faster way to advance all layers by a step."""

    attends: bool  # whether it attends to the source itself

    def parts(self) -> list[tuple[object, str]]:
        """Return its methods that take time, for a stopwatch."""

    def prepare(self, memories: Sequence[Any], like: Tensor) -> tuple[tuple[Any, ...], Any]:
        """Lay out a batch's source; see ``FusedLayers``."""

    def step(
        self,
        x: Tensor,
        states: Sequence[State],
        batch: Any,
        rows: Tensor | None,
        attending: Attending,
        trace: bool,
    ) -> tuple[Tensor, State, list[Glimpse]]:
        """Advance; see ``LayeredDecoder._advance``."""


class DecoderLayer(Feeding):
    """Up to three sublayers, each with a residual connection and layer norm.

    Args:
        size: D.
        mixer: Of the steps so far.
        attention: To the source, or None.
        feed_forward: Or None.
        pre_norm: Whether the norms come before the sublayers.
        dropout: Share of each sublayer's outputs dropped in training.
    """

    def __init__(
        self,
        size: int,
        mixer: Mixer,
        attention: Heads | Reuse | None,
        feed_forward: FeedForward | None,
        pre_norm: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.mixer, self.attention, self.feed_forward = mixer, attention, feed_forward
        self.around_mixer = Residual(size, pre_norm, dropout)
        if attention is not None:
            self.around_attention = Residual(size, pre_norm, dropout)
        if feed_forward is not None:
            self.around_feed_forward = Residual(size, pre_norm, dropout)

    def mix(self, x: Tensor, cache: Any, state: State) -> tuple[Tensor, State]:
        """Advance the mixer's sublayer by one step: x [N, D]."""
        y, state = self.mixer.step(self.around_mixer.enter(x), cache, state)
        return self.around_mixer.leave(x, y), state

    def mix_all(self, x: Tensor, state: State) -> Tensor:
        """Advance the mixer's sublayer by all steps: x [B, T, D]."""
        y = self.mixer.sequence(self.around_mixer.enter(x), state)
        return self.around_mixer.leave(x, y)


class LayeredMemory(NamedTuple):
    """A batch's source, for all layers."""

    attending: tuple[Any, ...]  # one per attending layer
    caches: tuple[Cache | None, ...]  # of each layer's mixer, grown by the steps
    summary: Tensor | None  # [B, D], added to every input if no layer has a context
    limits: Limits
    fast: Any = None  # of ``fast_layers``


class LayeredDecoder(Decoder):
    """Residual layers over embeddings with positions.

    With masked self-attention it is the decoder of Vaswani et al. (2017),
    https://arxiv.org/abs/1706.03762, section 3.1; with SSRU in its place that of Kim et al. (2019),
    https://aclanthology.org/D19-5632. The query of an attending sublayer is its input.

    Departure: with ``--attention none`` the source enters as the encoder's summary, which a product
    adds to every input.

    Args:
        layers: From the bottom.
        without: The mechanism with no context if no layer attends, else None.
        summary_size: Units of the encoder's summary.
        size: D.
        pre_norm: Whether the layers normalise their inputs, so that the last sum needs a norm.
        dropout: Share of embeddings dropped in training.
    """

    fast_layers: FastLayers | None = None  # for weights that will not change

    def __init__(
        self,
        layers: Sequence[DecoderLayer],
        without: Attention | None,
        summary_size: int,
        size: int,
        pre_norm: bool,
        dropout: float,
    ) -> None:
        super().__init__(size, size)
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(size) if pre_norm else None
        self.dropout = Dropout(dropout)
        self.without = without
        self.summary = None if without is None else Linear(summary_size, size)
        self.heads = max((part.heads for part in self._attentions()), default=1)

    def _attentions(self) -> list[Heads | Reuse]:
        return [layer.attention for layer in self.all_layers() if layer.attention is not None]

    def all_layers(self) -> Sequence[DecoderLayer]:
        """Return the layers, from the bottom."""
        return cast("Sequence[DecoderLayer]", self.layers)

    def mechanisms(self) -> list[Attention]:
        """Return the mechanism of each attending layer; see ``Decoder.mechanisms``."""
        found = [heads.mechanism for heads in self._attentions()]
        return found if self.without is None else [self.without]

    def parts(self) -> dict[str, list[tuple[object, str]]]:
        """Return attention, mixers and feed-forward layers; see ``Decoder.parts``.

        All that is computed in one call is one part.
        """
        attention: list[tuple[object, str]] = [(heads, "forward") for heads in self._attentions()]
        if self.fast_layers is not None:
            own = {"layers": self.fast_layers.parts()}
            return own if self.fast_layers.attends else {"attention": attention, **own}
        layers = self.all_layers()
        recurrent = isinstance(layers[0].mixer, Ssru)
        return {
            "attention": attention,
            "SSRU" if recurrent else "self-attention": [(layer, "mix") for layer in layers],
            "feed-forward": [(layer, "feed") for layer in layers],
        }

    def start(self, encoded: Encoded, limits: Limits = UNLIMITED) -> tuple[LayeredMemory, State]:
        """Start every mixer with nothing; see ``Decoder.start``."""
        self.check(limits)
        states, mask, _, source, before = encoded
        attentions = self._attentions()
        attending = tuple(
            heads.prepare(states, mask, limits._replace(weights=limits.reads(at)))
            for at, heads in enumerate(attentions)
        )
        summary = None if self.summary is None else self.summary(source)
        first = source.new_zeros(len(source), self.size)
        if before is None:
            before = torch.zeros(len(source), dtype=torch.long, device=source.device)
        state: State = (before,)
        caches = []
        for layer in self.all_layers():
            cache, own = layer.mixer.start(first)
            caches.append(cache)
            state += own
        for heads in attentions:
            state += heads.start(states)
        fast = None
        if self.fast_layers is not None:
            attending, fast = self.fast_layers.prepare(attending, first)
        return LayeredMemory(attending, tuple(caches), summary, limits, fast), state

    def words(self, embedded: Tensor) -> Words:
        """Return the embeddings, and what words contribute to each attending layer."""
        feedback = [heads.feedback(embedded) for heads in self._attentions()]
        return Words(embedded, torch.cat([embedded[..., :0], *feedback], dim=-1))

    def step(
        self,
        memory: LayeredMemory,
        rows: Tensor | None,
        state: State,
        words: Words,
        trace: bool = False,
    ) -> Step:
        """Advance one step; see ``Decoder.step``."""
        mixers, attending = self._split(state)
        feedback = words.feedback.chunk(max(1, len(attending)), dim=1)
        summary = memory.summary
        if summary is not None and rows is not None:
            summary = summary.index_select(0, rows)
        x = self._enter(words.gates, state[0], summary)

        def attend(at: int, query: Tensor) -> Glimpse:
            source = memory.attending[at]
            attention = self._attentions()[at]
            return attention(query, feedback[at], source, rows, attending[at], trace)

        if self.fast_layers is not None:
            own = Attending(attend, attending, words.feedback)
            x, mixed, glimpses = self.fast_layers.step(x, mixers, memory.fast, rows, own, trace)
        else:
            x, mixed, glimpses = self._advance(x, memory.caches, mixers, attend)
        after = (state[0] + 1, *mixed, *(part for seen in glimpses for part in seen.state))
        look = None
        if trace:
            traces = [seen.trace for seen in glimpses if seen.trace is not None]
            look = shown(traces, memory.limits) if traces else Trace(torch.zeros_like(state[0]))
        return Step(x, after, _mean([seen.gate for seen in glimpses]), look)

    def _advance(
        self,
        x: Tensor,
        caches: Sequence[Cache | None],
        mixers: Sequence[State],
        attend: Attend,
    ) -> tuple[Tensor, State, list[Glimpse]]:
        """Advance all layers by one step; return output, the mixers' state, and what was seen."""
        after: State = ()
        glimpses: list[Glimpse] = []
        for layer, cache, own in zip(self.all_layers(), caches, mixers, strict=True):
            x, mixed = layer.mix(x, cache, own)
            after += mixed
            if layer.attention is not None:
                seen = attend(len(glimpses), layer.around_attention.enter(x))
                x = layer.around_attention.leave(x, seen.context)
                glimpses.append(seen)
            x = layer.feed(x)
        return self._leave(x), after, glimpses

    def sequence(self, memory: LayeredMemory, state: State, embedded: Tensor) -> Steps:
        """Run over given words, every layer in all steps at once; see ``Decoder.sequence``."""
        mixers, attending = self._split(state)
        numbers = state[0].unsqueeze(1) + torch.arange(embedded.shape[1], device=embedded.device)
        summary = None if memory.summary is None else memory.summary.unsqueeze(1)
        x = self._enter(embedded, numbers, summary)
        gates: list[Tensor | None] = []
        weights: list[Tensor | None] = []  # [B, T, h S] of each attending layer
        for layer, own in zip(self.all_layers(), mixers, strict=True):
            x = layer.mix_all(x, own)
            if layer.attention is not None:
                at = len(gates)
                query, words = layer.around_attention.enter(x), layer.attention.feedback(embedded)
                source, before = memory.attending[at], attending[at]
                contexts, gate = layer.attention.sequence(query, words, source, before)
                contexts, seen = unmarked(contexts, self.size)
                x = layer.around_attention.leave(x, contexts)
                gates.append(gate)
                weights.append(seen)
            x = layer.feed(x)
        return Steps(self._leave(x), _mean(gates), self._shown(_mean(weights), memory.limits))

    def _shown(self, weights: Tensor | None, limits: Limits) -> Tensor | None:
        """Return the weights [B, T, S] of the head that limits name, or the mean of all heads."""
        if weights is None:
            return None
        each = weights.view(*weights.shape[:2], self.heads, -1)
        return each.mean(2) if limits.head is None else each[:, :, limits.head]

    def _split(self, state: State) -> tuple[list[State], list[State]]:
        """Return the states of the layers' mixers, and of their attention mechanisms."""
        size = self.all_layers()[0].mixer.state_size
        bound = 1 + size * len(self.layers)
        count = len(self._attentions())
        each = (len(state) - bound) // max(1, count)
        mixers = [state[first : first + size] for first in range(1, bound, size)]
        return mixers, [state[bound + at * each : bound + (at + 1) * each] for at in range(count)]

    def _enter(self, embedded: Tensor, numbers: Tensor, summary: Tensor | None) -> Tensor:
        """Return what the first layer reads: words [.., D] at the positions ``numbers`` [..]."""
        x = embedded + sinusoids(numbers, self.size, embedded.dtype)
        return self.dropout(x if summary is None else x + summary)

    def _leave(self, x: Tensor) -> Tensor:
        """Return output vectors of what the last layer made."""
        return x if self.norm is None else self.norm(x)


def _mean(parts: Sequence[Tensor | None]) -> Tensor | None:
    """Return the mean gate or weights of the attending layers that have some, or None."""
    found = [part for part in parts if part is not None]
    return torch.stack(found).mean(0) if found else None
