"""Flexible attention: a tracked focus, a gate, and positions that need not be computed."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

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
    register,
)
from nmtflex.attention.remainder import Sums, remainder, sum_up
from nmtflex.attention.scores import build_score
from nmtflex.attention.source import exactly, read_source
from nmtflex.config import FlexibleConfig
from nmtflex.layers.linear import Linear, Product
from nmtflex.ops import sequence
from nmtflex.ops.attend import Penalty, Source, attend, whole_sentences, window_below
from nmtflex.ops.luong import Attending, Focusing, Score
from nmtflex.ops.recurrent import gate


class Gate(nn.Module):
    """The strength of the distance penalty, between 0 (none) and 1.

    Shu and Nakayama, eq. 8 with the previous word's embedding i, eq. 7 without it; the bias is
    outside the tanh in eq. 8 and inside it in eq. 7::

        g = sigmoid(v . tanh(W [h; i]) + b)        (8)
        g = sigmoid(v . tanh(W h + b))             (7)

    Args:
        sizes: Widths of query, feedback and keys; W has ``keys`` units.
        feedback: Whether the gate sees the previous word.
    """

    def __init__(self, sizes: Sizes, feedback: bool) -> None:
        super().__init__()
        self.state = Product(sizes.query, sizes.keys, bias=not feedback)
        self.v = nn.Linear(sizes.keys, 1, bias=feedback)
        self.word: Linear | None = None
        if feedback:
            self.word = Linear(sizes.feedback, sizes.keys, bias=False)
            bound = 1 / math.sqrt(sizes.query + sizes.feedback)  # of W as one matrix
            nn.init.uniform_(self.state.weight, -bound, bound)
            nn.init.uniform_(self.word.weight, -bound, bound)

    def feedback(self, embedded: Tensor) -> Tensor:
        """Return the words' side of W [h; i], [.., A] of [.., E]; [.., 0] under eq. 7."""
        return embedded[..., :0] if self.word is None else self.word(embedded)

    def forward(self, query: Tensor, feedback: Tensor) -> Tensor:
        """Return g [N] of queries [N, Q] and the words' side [N, A] or [N, 0]."""
        word = None if self.word is None else feedback
        return gate(self.state(query), word, self.v.weight.squeeze(0), self.v.bias)


class Reach(NamedTuple):
    """A batch's source, and the threshold of the penalty."""

    source: Source
    tau: float
    sums: Sums | None = None  # of the source, for the remainder under a threshold


@register(FlexibleConfig)
class FlexibleAttention(Attention):
    """Flexible attention.

    Shu and Nakayama (2016), "Reducing Redundant Computations with Flexible Attention",
    https://arxiv.org/abs/1612.06043, eq. 4-6::

        p[t]       = sum over s of a(s) s                                     (4)
        penalty(s) = g[t] (s - p[t-1])^2 / (2 sigma^2)                        (5)
        a(s)       = softmax over s of score(h, k_s) - penalty(s)             (6)

    with the gate g of ``Gate``. Positions count from 0 and p starts at 0; gradients flow through
    the previous focus. The weights of a step sum to 1.

    With a threshold tau (of ``Limits``; the paper trains without) only positions with
    penalty(s) < tau are computed, those within sigma sqrt(2 tau / g) of the focus, from the first
    step on. Where the paper is silent, the softmax runs over these positions only, the focus is
    tracked from their weights, and if none is below tau the position nearest the focus (the first
    of two) is computed.

    With ``remainder``, which is not in the paper, one more item takes part in the softmax under a
    threshold and stands for the positions left out; see ``remainder``. Its score is counted. The
    focus is that of the window alone: the remainder's mean position would draw it to the middle of
    the source. Without a threshold nothing is left out, and nothing changes. It needs no weights,
    and memory for sums as large as keys and values.

    Focus, distance, gate and penalty are in float32 at least. The state is the focus [N].

    Args:
        sizes: Widths of query, feedback, states and keys.
        config: ``sigma`` in source positions, ``score``, ``gate_feedback``, ``remainder``.
    """

    gated: ClassVar[bool] = True

    def __init__(self, sizes: Sizes, config: FlexibleConfig) -> None:
        super().__init__()
        self.context_size = sizes.states
        self.score = build_score(config.score, sizes)
        self.gate = Gate(sizes, config.gate_feedback)
        self.sigma = config.sigma
        self.remainder = config.remainder

    def prepare(
        self, states: Tensor, mask: Tensor, limits: Limits = UNLIMITED, keys: Tensor | None = None
    ) -> Reach:
        """Project the keys once a sentence; see ``Attention.prepare``.

        Raises:
            ValueError: The threshold is negative or NaN.
        """
        if not limits.tau >= 0:
            raise ValueError(f"a threshold is at least 0, not {limits.tau}")
        source = read_source(self.score, states, mask, keys)
        summed = self.remainder and limits.tau < math.inf
        return Reach(source, limits.tau, sum_up(source) if summed else None)

    def feedback(self, embedded: Tensor) -> Tensor:
        """Return the words' side of the gate; see ``Attention.feedback``."""
        return self.gate.feedback(embedded)

    def start(self, states: Tensor) -> State:
        """Return the focus 0 of each sentence."""
        return (exactly(states.new_zeros(len(states))),)

    def forward(
        self,
        query: Tensor,
        feedback: Tensor,
        memory: Reach,
        rows: Tensor | None,
        state: State,
        trace: bool = False,
    ) -> Glimpse:
        """Attend near the last focus; see ``Attention.forward``."""
        (focus,) = state
        source, tau, sums = memory
        g = self.gate(query, feedback)
        penalty = Penalty(g, focus, self.sigma)
        window = None
        if tau < math.inf:
            window = window_below(tau, penalty, source.lengths_of(rows))
        query, v = self.score.queries(query), self.score.v
        context, focus, weights, log_sum = attend(
            query, source, rows, v, window, penalty, trace=trace
        )
        rest = None
        if sums is not None and window is not None:
            rest = remainder(sums, query, v, rows, window, penalty, log_sum, tau)
            context = rest.join(context)
        if not trace:
            return Glimpse(context, (focus,), g)
        start, stop = window or whole_sentences(source, rows)
        seen = Trace(stop - start, weights, g, focus, start, stop)
        return Glimpse(context, (focus,), g, seen if rest is None else rest.seen(seen))

    def attending(self, memory: Reach, state: State) -> Attending | None:
        """Return source, score, gate and penalty; see ``Attention.attending``.

        The remainder goes step by step.
        """
        if memory.sums is not None:
            return None
        (focus,), inner, outer = state, self.gate.state, self.gate.v
        gate = inner.weight, inner.bias, outer.weight.squeeze(0), outer.bias
        focusing = Focusing(*gate, focus, self.sigma, memory.tau)
        return Attending(memory.source, Score(*self.score.of_queries()), focusing)

    def sequence(
        self, queries: Tensor, feedback: Tensor, memory: Reach, state: State
    ) -> tuple[Tensor, Tensor]:
        """Attend in all steps, which pass on only the focus; see ``Attention.sequence``."""
        (focus,) = state
        (keys, values, lengths), tau, sums = memory
        size, flat = queries.shape[:2], queries.flatten(0, 1)
        gates = self.gate(flat, feedback.flatten(0, 1)).view(size)
        queries = self.score.queries(flat).view(*size, -1)
        scores = sequence.scores(queries, keys, lengths, self.score.v)
        weights, focuses = sequence.walk(scores, gates, focus, lengths, self.sigma, tau)
        contexts = sequence.contexts(weights, values, lengths)
        if sums is not None:
            before = torch.cat([focus.unsqueeze(1), focuses[:, :-1]], dim=1)
            steps = (part.flatten(0, 1) for part in (queries, scores, weights, contexts))
            penalty = Penalty(gates.flatten(), before.flatten(), self.sigma)
            contexts = self._joined(sums, penalty, tau, *steps).view_as(contexts)
        return contexts, gates

    def _joined(
        self,
        sums: Sums,
        penalty: Penalty,
        tau: float,
        queries: Tensor,
        scores: Tensor,
        weights: Tensor,
        contexts: Tensor,
    ) -> Tensor:
        """Return the contexts [B T, H] of all steps with the remainders' parts in them."""
        steps = len(queries) // len(sums.lengths)
        rows = torch.arange(len(sums.lengths), device=queries.device).repeat_interleave(steps)
        window = window_below(tau, penalty, sums.lengths[rows])
        # Of any position read, log a(s) = score - penalty - log_sum: here of the greatest.
        greatest = weights.argmax(dim=1, keepdim=True)
        log_sum = scores.gather(1, greatest) - penalty.at(greatest)
        log_sum = (log_sum - weights.gather(1, greatest).log()).squeeze(1)
        v = self.score.v
        return remainder(sums, queries, v, rows, window, penalty, log_sum, tau).join(contexts)
