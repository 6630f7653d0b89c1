"""Flexible attention: a tracked focus, a gate, and positions that need not be computed."""

from __future__ import annotations

import math
from typing import ClassVar

from torch import Tensor, nn

from nmtflex.attention.base import Attention, Sizes, State, Trace, register
from nmtflex.attention.scores import build_score
from nmtflex.attention.source import exactly, read_source
from nmtflex.config import FlexibleConfig
from nmtflex.layers.linear import Linear, Product
from nmtflex.ops.attend import Penalty, Source, Window, attend, whole_sentences, window_below
from nmtflex.ops.recurrent import gate


class Gate(nn.Module):
    """How strongly distance is punished, between 0 (not at all) and 1.

    Shu and Nakayama, eq. 8 with the previous word's embedding i, eq. 7 without it; the bias stands
    outside the tanh in the one and inside it in the other::

        g = sigmoid(v . tanh(W [h; i]) + b)        (8)
        g = sigmoid(v . tanh(W h + b))             (7)

    Args:
        sizes: Widths of query, feedback and keys; W has ``keys`` units.
        feedback: Whether the previous word is seen.
    """

    def __init__(self, sizes: Sizes, feedback: bool) -> None:
        super().__init__()
        self.state = Product(sizes.query, sizes.keys, bias=not feedback)
        self.v = nn.Linear(sizes.keys, 1, bias=feedback)
        self.word: nn.Module | None = None
        if feedback:
            self.word = Linear(sizes.feedback, sizes.keys, bias=False)
            bound = 1 / math.sqrt(sizes.query + sizes.feedback)  # of W as one matrix
            nn.init.uniform_(self.state.weight, -bound, bound)
            nn.init.uniform_(self.word.weight, -bound, bound)

    def forward(self, query: Tensor, feedback: Tensor) -> Tensor:
        """Return g [N] of queries [N, Q] and embeddings [N, E]."""
        word = None if self.word is None else self.word(feedback)
        return gate(self.state(query), word, self.v.weight.squeeze(0), self.v.bias)


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

    With a threshold tau (``set_threshold``; the paper trains without) only positions with
    penalty(s) < tau are computed, those within sigma sqrt(2 tau / g) of the focus, from the first
    step on. Departures where the paper is silent: the softmax runs over those alone, the focus is
    tracked from their weights, and where none is below tau the position nearest the focus (the
    first of two) is computed.

    Focus, distance, gate and penalty are in float32 at least, whatever the rest runs in. The state
    is the focus [N].

    Args:
        sizes: Widths of query, feedback, states and keys.
        config: ``sigma`` in source positions, ``score``, ``gate_feedback``.
    """

    gated: ClassVar[bool] = True

    def __init__(self, sizes: Sizes, config: FlexibleConfig) -> None:
        super().__init__()
        self.context_size = sizes.states
        self.score = build_score(config.score, sizes)
        self.gate = Gate(sizes, config.gate_feedback)
        self.sigma = config.sigma

    def set_threshold(self, tau: float) -> None:
        """Compute only positions with a penalty below ``tau``; see ``Attention``.

        Raises:
            ValueError: ``tau`` is negative or NaN.
        """
        if not tau >= 0:
            raise ValueError(f"a threshold is at least 0, not {tau}")
        self.tau = tau

    def prepare(self, states: Tensor, mask: Tensor) -> Source:
        """Project the keys once a sentence; see ``Attention.prepare``."""
        return read_source(self.score, states, mask)

    def freeze(self, embedded: Tensor) -> Tensor:
        """Tabulate the gate's side of every word; see ``Attention.freeze``."""
        if self.gate.word is None:
            return embedded[:, :0]
        table = self.gate.word(embedded)
        self.gate.word = nn.Identity()
        return table

    def start(self, states: Tensor) -> State:
        """Return the focus 0 of each sentence."""
        return (exactly(states.new_zeros(len(states))),)

    def forward(
        self,
        query: Tensor,
        feedback: Tensor,
        memory: Source,
        rows: Tensor | None,
        state: State,
        trace: bool = False,
    ) -> tuple[Tensor, State, Trace | None]:
        """Attend near the last focus; see ``Attention.forward``."""
        (focus,) = state
        g = self.gate(query, feedback)
        window = None
        if self.tau < math.inf:
            window = self.window(g, focus, memory.lengths_of(rows))
        context, focus, weights = attend(
            self.score.queries(query),
            memory,
            rows,
            self.score.v,
            window,
            Penalty(g, focus, self.sigma),
            trace=trace,
        )
        if not trace:
            return context, (focus,), None
        start, stop = window or whole_sentences(memory, rows)
        return context, (focus,), Trace(stop - start, weights, g, focus, start, stop)

    def window(self, gate: Tensor, focus: Tensor, lengths: Tensor) -> Window:
        """Return the positions with a penalty below tau.

        Args:
            gate: [N].
            focus: [N] of the step before.
            lengths: [N] source tokens.
        """
        return window_below(self.tau, Penalty(gate, focus, self.sigma), lengths)
