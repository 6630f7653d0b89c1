"""Reuse: a step may take the last context again instead of attending.

Legend: B sentences, S source positions, T steps, N hypotheses, H encoder units, C context units, F
units that a word contributes.
"""

from __future__ import annotations

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
    step_by_step,
)
from nmtflex.attention.flexible import Gate
from nmtflex.attention.heads import Heads
from nmtflex.attention.marking import unmarked
from nmtflex.attention.source import exactly

OPEN = 2.0  # logit of the gate at first: a fresh model attends


class Reusable(NamedTuple):
    """A batch's source, and the gate below which a step does not read it."""

    inner: Any  # of the attention inside
    below: float


class Reuse(nn.Module):
    """Attention of any mechanism, at the steps where a gate asks for it.

    Not from a paper; the gate is that of flexible attention (Shu and Nakayama, eq. 8), with weights
    of its own, open at first::

        u[t] = sigmoid(v . tanh(W [h; i]) + b)                 1 in the first step
        c[t] = u[t] attention(h) + (1 - u[t]) c[t-1]

    With a threshold U (``Limits.reuse``) a gate below U counts as 0: those hypotheses do not
    attend, compute no scores, and leave the mechanism's state as it is. U = 0, as in training,
    computes every step. Choosing the hypotheses makes the CPU wait for a GPU, once a step.

    The gate of a ``Glimpse`` is 1 - u, so that a greater one saves computations, as that of
    flexible attention; with a gated mechanism inside it is the mean of both gates, of which the
    second is 1 where a step does not attend. A trace then shows weights of 0.

    Heads stand inside: a layer decides once for all of its heads. The state is c [N, C], whether
    there is one [N], and the mechanism's own.

    Args:
        inner: A mechanism, or heads around one.
        sizes: Widths of query, feedback and of the gate's hidden layer (``keys``).
    """

    def __init__(self, inner: Attention | Heads, sizes: Sizes) -> None:
        super().__init__()
        self.inner = inner
        self.context_size = inner.context_size
        self.gate = Gate(sizes, feedback=True)
        nn.init.constant_(self.gate.v.bias, OPEN)

    @property
    def mechanism(self) -> Attention:
        """The mechanism inside."""
        return self.inner.mechanism

    @property
    def heads(self) -> int:
        """Heads of the attention inside."""
        return self.inner.heads

    def prepare(
        self, states: Tensor, mask: Tensor, limits: Limits = UNLIMITED, keys: Tensor | None = None
    ) -> Reusable:
        """Make the memory of a batch; see ``Attention.prepare``."""
        scored = () if keys is None else (keys,)  # heads make their own
        return Reusable(self.inner.prepare(states, mask, limits, *scored), limits.reuse)

    def feedback(self, embedded: Tensor) -> Tensor:
        """Return the words' side of the gate and of the attention inside, [.., E] to [.., F]."""
        return torch.cat([self.gate.feedback(embedded), self.inner.feedback(embedded)], dim=-1)

    def start(self, states: Tensor) -> State:
        """Return the state before the first step, without a context."""
        context = exactly(states.new_zeros(len(states), self.context_size))
        return (context, context.new_zeros(len(context)), *self.inner.start(states))

    def forward(
        self,
        query: Tensor,
        feedback: Tensor,
        memory: Reusable,
        rows: Tensor | None,
        state: State,
        trace: bool = False,
    ) -> Glimpse:
        """Attend, or not, for each of N hypotheses; see ``Attention.forward``."""
        context, begun, *own = state
        words, feedback = self._split(feedback)
        u = torch.where(begun > 0, exactly(self.gate(query, words)), 1.0)
        given = query, feedback, memory.inner
        if memory.below > 0:
            seen = self._some(u >= memory.below, *given, rows, (context, *own), trace)
            share = u.masked_fill(u < memory.below, 0)
        else:
            seen, share = self.inner(*given, rows, tuple(own), trace), u
        found, weights = unmarked(seen.context, self.context_size)
        context = torch.lerp(context, found.to(context.dtype), share.unsqueeze(1))
        gate = _joined(u, seen.gate)
        shown = None if seen.trace is None else _shown(seen.trace, gate)
        after = context, torch.ones_like(begun), *seen.state
        return Glimpse(_marked(context, weights), after, gate, shown)

    def _some(
        self,
        attends: Tensor,
        query: Tensor,
        feedback: Tensor,
        memory: Any,
        rows: Tensor | None,
        state: State,
        trace: bool,
    ) -> Glimpse:
        """Attend for the hypotheses that do, [N] in ``attends``; the others keep their ``state``.

        ``state`` begins with the last contexts, which stand for the new ones where there are none.
        """
        chosen = attends.nonzero().squeeze(1)
        if not len(chosen):
            return self._nothing(query, feedback, memory, rows, state, trace)
        own = tuple(part.index_select(0, chosen) for part in state[1:])
        rows = chosen if rows is None else rows.index_select(0, chosen)
        seen = self.inner(query[chosen], feedback[chosen], memory, rows, own, trace)
        context, *after = (
            old.index_copy(0, chosen, new.to(old.dtype))
            for old, new in zip(state, (seen.context, *seen.state), strict=True)
        )
        gate = None
        if seen.gate is not None:  # where a step attends; a closed one elsewhere
            gate = seen.gate.new_ones(len(query)).index_copy(0, chosen, seen.gate)
        looked = None if seen.trace is None else _laid_out(seen.trace, chosen, len(query))
        return Glimpse(context, tuple(after), gate, looked)

    def _nothing(
        self,
        query: Tensor,
        feedback: Tensor,
        memory: Any,
        rows: Tensor | None,
        state: State,
        trace: bool,
    ) -> Glimpse:
        """Keep the state of all; see ``_some``. A trace is shaped like that of one hypothesis."""
        count, (context, *own), looked = len(query), state, None
        if trace:
            first = tuple(part[:1] for part in own)
            rows = torch.zeros_like(query[:1, 0], dtype=torch.long) if rows is None else rows[:1]
            seen = self.inner(query[:1], feedback[:1], memory, rows, first, trace).trace
            looked = _laid_out(seen, rows[:0], count)
        gate = context.new_ones(count) if self.mechanism.gated else None
        return Glimpse(context, tuple(own), gate, looked)

    def sequence(
        self, queries: Tensor, feedback: Tensor, memory: Reusable, state: State
    ) -> tuple[Tensor, Tensor | None]:
        """Attend in all steps; see ``Attention.sequence``.

        Without a threshold only the contexts depend on those before: the mechanism's own way, then
        one walk. With one, step by step.
        """
        if memory.below > 0:
            return step_by_step(self, queries, feedback, memory, state)
        context, begun, *own = state
        words, feedback = self._split(feedback)
        seen, gates = self.inner.sequence(queries, feedback, memory.inner, tuple(own))
        found, weights = unmarked(seen, self.context_size)
        u = self.gate(queries.flatten(0, 1), words.flatten(0, 1)).view(queries.shape[:2])
        first = torch.where(begun > 0, exactly(u[:, 0]), 1.0)
        u = torch.cat([first.unsqueeze(1), exactly(u[:, 1:])], dim=1)
        contexts = []
        for new, share in zip(found.to(context.dtype).unbind(1), u.unbind(1), strict=True):
            context = torch.lerp(context, new, share.unsqueeze(1))
            contexts.append(context)
        return _marked(torch.stack(contexts, dim=1), weights), _joined(u, gates)

    def attending(self, memory: Reusable, state: State) -> None:
        """There is no operation of all steps that may reuse contexts."""

    def _split(self, feedback: Tensor) -> tuple[Tensor, Tensor]:
        """Return the words' side of the gate, and that of the attention inside."""
        units = self.gate.v.in_features
        return feedback[..., :units], feedback[..., units:]


def _marked(context: Tensor, weights: Tensor | None) -> Tensor:
    """Return contexts that end in the weights of the attention inside, if they are asked for."""
    return context if weights is None else torch.cat([context, weights.to(context.dtype)], dim=-1)


def _joined(u: Tensor, gate: Tensor | None) -> Tensor:
    """Return the gate to train and to show: 1 - u, or its mean with that of the mechanism."""
    return 1 - u if gate is None else (1 - u + gate) / 2


def _shown(trace: Trace, gate: Tensor) -> Trace:
    """Return a trace with the gate of a step, the same for every head [N, h]."""
    gate = gate.detach()
    if trace.computed.dim() == 2:
        gate = gate.unsqueeze(1).expand(trace.computed.shape)
    return trace._replace(gate=gate)


def _laid_out(trace: Trace, chosen: Tensor, count: int) -> Trace:
    """Return the trace of N hypotheses, of which only the chosen ones have looked at anything."""
    alpha = trace.alpha  # of sentences, not of hypotheses
    parts = (
        None
        if part is None
        else part.new_zeros(count, *part.shape[1:]).index_copy(0, chosen, part[: len(chosen)])
        for part in trace._replace(alpha=None)
    )
    return Trace(*parts)._replace(alpha=alpha)  # type: ignore[arg-type]
