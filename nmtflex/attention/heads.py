"""Heads: any mechanism, several times side by side.

Legend: B sentences, S source positions, T steps, N hypotheses, H encoder units, D decoder units, h
heads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmtflex.attention.base import (
    UNLIMITED,
    Attention,
    Glimpse,
    Limits,
    Sizes,
    State,
    Trace,
    build_attention,
)
from nmtflex.attention.marking import prepare, unmarked
from nmtflex.config import AttentionConfig
from nmtflex.layers.linear import Product, glorot


class HeadMemory(NamedTuple):
    """A batch's source for all heads."""

    inner: Any  # of the mechanism, for h B sentences: those of head i from i B
    sentences: int  # B


class Heads(nn.Module):
    """Multi-head attention with any mechanism in the place of the scaled dot product.

    Vaswani et al. (2017), https://arxiv.org/abs/1706.03762, section 3.2.2::

        head_i = attention(q W_Q_i, S W_K_i, S W_V_i)
        c      = [head_1; ..; head_h] W_O

    The heads are folded into the batch, so a mechanism is written for one head, and each head has
    its own gate, focus, window or slots. The weights inside a mechanism serve all heads. With
    global attention and the dot score this is the attention of Vaswani et al.

    Args:
        config: Of the mechanism.
        sizes: Widths of query (D), feedback and states (H); ``keys`` is per head.
        heads: h, which divides D.
    """

    def __init__(self, config: AttentionConfig, sizes: Sizes, heads: int) -> None:
        super().__init__()
        size = sizes.query
        each = size // heads
        self.heads = heads
        self.context_size = size
        inner = sizes._replace(query=each, states=each, scale=1 / math.sqrt(each))
        self.mechanism: Attention = build_attention(config, inner)
        self.query = glorot(Product(size, size))
        self.source = glorot(Product(sizes.states, 2 * size), outputs=2)  # W_K, W_V
        self.output = glorot(Product(heads * self.mechanism.context_size, size))

    def prepare(self, states: Tensor, mask: Tensor, limits: Limits = UNLIMITED) -> HeadMemory:
        """Make the memory of a batch; see ``Attention.prepare``."""
        keys, values = map(self._fold_steps, self.source(states).chunk(2, dim=2))
        mask = torch.cat([mask] * self.heads)  # repeat takes several times as long
        return HeadMemory(prepare(self.mechanism, values, mask, limits, keys), len(states))

    def feedback(self, embedded: Tensor) -> Tensor:
        """Return what depends on previous words, the same for all heads: [.., E] to [.., F]."""
        return self.mechanism.feedback(embedded)

    def start(self, states: Tensor) -> State:
        """Return the state before the first step: [B, h, ...] of states [B, S, H]."""
        own = states[..., : self.query.out_features // self.heads]
        return self._unfold(self.mechanism.start(torch.cat([own] * self.heads)))

    def forward(
        self,
        query: Tensor,
        feedback: Tensor,
        memory: HeadMemory,
        rows: Tensor | None,
        state: State,
        trace: bool = False,
    ) -> Glimpse:
        """Attend once for each of N hypotheses; see ``Attention.forward``.

        Returns:
            Context [N, D], state [N, h, ...], the mean gate of the heads [N], and the trace of each
            head, [N, h, ...].
        """
        queries = self._fold(self.query(query))
        if rows is not None:
            firsts = torch.arange(self.heads, device=rows.device) * memory.sentences
            rows = (firsts.unsqueeze(1) + rows).flatten()  # ascending, as the mechanisms like it
        words = self._for_each(feedback)
        seen = self.mechanism(queries, words, memory.inner, rows, self._fold_state(state), trace)
        context, _ = unmarked(seen.context, self.mechanism.context_size)
        context, *parts = self._unfold((context, *seen.state))
        gate = None if seen.gate is None else seen.gate.view(self.heads, -1).mean(0)
        looked = None if seen.trace is None else self._unfold_trace(seen.trace)
        return Glimpse(self.output(context.flatten(1)), tuple(parts), gate, looked)

    def sequence(
        self, queries: Tensor, feedback: Tensor, memory: HeadMemory, state: State
    ) -> tuple[Tensor, Tensor | None]:
        """Attend in all steps; see ``Attention.sequence``.

        Returns:
            Contexts [B, T, D], which end in the weights of all heads, h S more, if the states were
            marked; and the mean gates of the heads [B, T].
        """
        words = self._for_each(feedback)
        contexts, gates = self.mechanism.sequence(
            self._fold_steps(self.query(queries)), words, memory.inner, self._fold_state(state)
        )
        contexts, weights = unmarked(contexts, self.mechanism.context_size)
        (contexts,) = self._unfold((contexts,))  # [B, h, T, D / h]
        if gates is not None:
            gates = gates.view(self.heads, -1, gates.shape[1]).mean(0)
        contexts = self.output(contexts.transpose(1, 2).flatten(2))
        if weights is not None:
            (weights,) = self._unfold((weights,))  # [B, h, T, S]
            contexts = torch.cat([contexts, weights.transpose(1, 2).flatten(2)], dim=2)
        return contexts, gates

    def _fold(self, x: Tensor) -> Tensor:
        """Return [N, D] as [h N, D / h]."""
        return x.view(len(x), self.heads, -1).transpose(0, 1).flatten(0, 1)

    def _for_each(self, feedback: Tensor) -> Tensor:
        """Return [N, ...], the same for all heads, as [h N, ...]."""
        return feedback.expand(self.heads, *feedback.shape).flatten(0, 1)

    def _fold_steps(self, x: Tensor) -> Tensor:
        """Return [B, T, D] as [h B, T, D / h]."""
        return x.view(*x.shape[:2], self.heads, -1).permute(2, 0, 1, 3).flatten(0, 1)

    def _fold_state(self, parts: State) -> State:
        """Return tensors [N, h, ...] as [h N, ...]."""
        return tuple(part.transpose(0, 1).flatten(0, 1) for part in parts)

    def _unfold(self, parts: State) -> State:
        """Return tensors [h N, ...] as [N, h, ...]."""
        return tuple(
            part.reshape(self.heads, len(part) // self.heads, *part.shape[1:]).transpose(0, 1)
            for part in parts
        )

    def _unfold_trace(self, trace: Trace) -> Trace:
        """Return a trace of [h N, ...] as one of [N, h, ...]."""
        return Trace(*(None if part is None else self._unfold((part,))[0] for part in trace))  # type: ignore[arg-type]


def shown(traces: Sequence[Trace], limits: Limits) -> Trace:
    """Return one trace of those of all attending layers, each [N, h, ...].

    ``computed`` is the sum over layers and heads. Everything else is that of the layer and head
    that ``limits`` names, or the mean over all of them. A mean has no window and no slots: those of
    different heads have nothing in common.

    Args:
        traces: One per attending layer, from the bottom.
        limits: ``layer`` and ``head`` to show.
    """
    computed = torch.stack([trace.computed for trace in traces], dim=1).sum((1, 2))
    layers = traces if limits.layer is None else traces[limits.layer : limits.layer + 1]

    def part(name: str) -> Tensor | None:
        found = [getattr(trace, name) for trace in layers]
        if found[0] is None:
            return None
        stacked = torch.stack(found, dim=1)  # [N, layers, h, ...]
        if limits.head is not None:
            stacked = stacked[:, :, limits.head : limits.head + 1]
        if stacked.shape[1] * stacked.shape[2] == 1:
            return stacked[:, 0, 0]
        if name in ("window_start", "window_stop", "beta", "alpha"):
            return None
        if not stacked.is_floating_point():
            stacked = stacked.double()
        return stacked.mean((1, 2))

    parts = {name: part(name) for name in Trace._fields[1:-1]}
    return Trace(computed, **parts, each=part("computed"))
