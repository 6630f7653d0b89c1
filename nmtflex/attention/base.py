"""The contract of every attention mechanism, and their registry.

Legend: B sentences, S source positions after padding, N hypotheses, H encoder units (both
directions), Q decoder units, E embedding units, K memory slots.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from nmtflex.config import AttentionConfig

if TYPE_CHECKING:
    from nmtflex.ops.luong import Attending

State = tuple[Tensor, ...]


class Sizes(NamedTuple):
    """Widths that a mechanism must fit, in units, and the longest source it was made for."""

    query: int  # Q
    feedback: int  # E
    states: int  # H
    keys: int  # inside the additive score, the gate and the predicted centre
    source_length: int  # longest source of the training data, in tokens
    scale: float = 1.0  # of dot products: with heads 1 / sqrt(Q), by Vaswani et al., eq. 1


class Trace(NamedTuple):
    """What a step looked at, made on request; None for what a mechanism does not have.

    Of several heads, ``computed`` counts the scores of all; the rest is of one or is their mean.
    """

    computed: Tensor  # [N] score computations
    weights: Tensor | None = None  # [N, S]
    gate: Tensor | None = None  # [N], 0 open to 1
    focus: Tensor | None = None  # [N], source positions from 0: of this step's weights (flexible,
    # whose window is around the focus of the step before), the window's centre (local), or where
    # the scan stopped, S past the end (monotonic)
    window_start: Tensor | None = None  # [N], first position computed
    window_stop: Tensor | None = None  # [N], one past the last
    beta: Tensor | None = None  # [N, K], weights over memory slots
    alpha: Tensor | None = None  # [B, S, K], each sentence's weights that filled the slots
    each: Tensor | None = None  # [N] scores of the head shown, or the mean; None: computed


class Limits(NamedTuple):
    """What a call may skip, and what its traces show: never a state of a module."""

    tau: float = math.inf  # positions with a penalty of tau or more are not computed; inf: all are
    layer: int | None = None  # of traces, from 0 among the attending ones; None: mean of all
    head: int | None = None  # of traces, from 0; None: mean of all
    reuse: float = 0.0  # steps whose gate of reuse is below it do not attend; 0: all do
    weights: bool = False  # whether training reads the weights of its steps; see ``marking``
    traced: bool = True  # whether traces show source positions, so that what filled slots is kept

    def reads(self, layer: int) -> bool:
        """Whether training reads the weights of an attending layer."""
        return self.weights and self.layer in (None, layer)

    def kept(self, filling: Tensor) -> Tensor:
        """Return what filled slots [B, S, K] if traces read it, else nothing of it: [B, 0, K]."""
        return filling if self.traced else filling.new_empty(len(filling), 0, filling.shape[2])


UNLIMITED = Limits()


class Glimpse(NamedTuple):
    """The result of a step of attention."""

    context: Tensor  # [N, C]
    state: State  # [N, ...] each
    gate: Tensor | None = None  # [N] with gradient, of mechanisms that have one
    trace: Trace | None = None  # on request


class Attention(nn.Module, ABC):
    """Base of the mechanisms.

    ``self`` keeps nothing of a sentence: ``prepare`` makes the memory once a sentence, and a step
    reads it through ``rows`` without copying it for the beam.
    """

    context_size: int  # units of a context vector, 0 for none
    heads: ClassVar[int] = 1
    gated: ClassVar[bool] = False  # has a gate: can be finetuned, and takes a threshold
    aligned: ClassVar[bool] = True  # has weights over source positions

    @property
    def mechanism(self) -> Attention:
        """The mechanism itself, which heads and reuse have inside."""
        return self

    @abstractmethod
    def prepare(
        self, states: Tensor, mask: Tensor, limits: Limits = UNLIMITED, keys: Tensor | None = None
    ) -> Any:
        """Make the memory of a batch.

        Args:
            states: [B, S, H] encoder states, of which contexts are sums.
            mask: [B, S], True at real tokens.
            limits: What the steps that read this memory may skip, and what their traces show.
            keys: [B, S, H] what is scored in place of the states; with heads another projection.

        Returns:
            Whatever ``forward`` reads of these sentences, a NamedTuple.
        """

    def feedback(self, embedded: Tensor) -> Tensor:
        """Return what depends on previous words only, for one step or for all.

        It is computed before the steps: in training for all steps of a batch, in decoding once for
        every word of the vocabulary.

        Args:
            embedded: [.., E] embeddings of the previous words.

        Returns:
            [.., F], rows of ``forward``'s ``feedback``; F is 0 if the words are not used.
        """
        return embedded[..., :0]

    def start(self, states: Tensor) -> State:
        """Return the state before the first step, one row a sentence of ``states`` [B, S, H]."""
        return ()

    @abstractmethod
    def forward(
        self,
        query: Tensor,
        feedback: Tensor,
        memory: Any,
        rows: Tensor | None,
        state: State,
        trace: bool = False,
    ) -> Glimpse:
        """Attend once for each of N hypotheses.

        Args:
            query: [N, Q] decoder state of the mechanism's paper.
            feedback: [N, F] from ``feedback`` of the previous output words.
            memory: What ``prepare`` made.
            rows: [N], ascending: the sentence of each hypothesis. None: hypothesis n is of
                sentence n, as in training.
            state: What ``start`` or the step before returned, [N, ...] each.
            trace: Whether to return a ``Trace``.
        """

    def sequence(
        self, queries: Tensor, feedback: Tensor, memory: Any, state: State
    ) -> tuple[Tensor, Tensor | None]:
        """Attend in all steps of a batch, if no query depends on an earlier context.

        Equal to ``forward`` step by step: a loop over it, or one call for all steps if there is no
        state, so that no step depends on another.

        Args:
            queries: [B, T, Q].
            feedback: [B, T, F] from ``feedback``.
            memory: What ``prepare`` made.
            state: What ``start`` returned.

        Returns:
            Contexts [B, T, C], and gates [B, T] if there is a gate.
        """
        if not state:
            return self.at_once(queries, feedback, memory, ())
        return step_by_step(self, queries, feedback, memory, state)

    def at_once(
        self, queries: Tensor, feedback: Tensor, memory: Any, states: State
    ) -> tuple[Tensor, Tensor | None]:
        """Attend in all steps as if they were hypotheses; see ``sequence``.

        Args:
            queries: [B, T, Q].
            feedback: [B, T, F].
            memory: What ``prepare`` made.
            states: The state before every step, [B T, ...] each.
        """
        size = queries.shape[:2]
        rows = torch.arange(len(queries), device=queries.device).repeat_interleave(size[1])
        glimpse = self(queries.flatten(0, 1), feedback.flatten(0, 1), memory, rows, states)
        gates = None if glimpse.gate is None else glimpse.gate.unflatten(0, size)
        return glimpse.context.unflatten(0, size), gates

    def attending(self, memory: Any, state: State) -> Attending | None:
        """Return what ``nmtflex.ops.luong`` needs to attend in all steps; None: it cannot.

        Args:
            memory: What ``prepare`` made.
            state: What ``start`` returned.
        """
        return None

    def weight_sums(self, length: int) -> tuple[float, float]:
        """Return the least and the greatest sum of a step's weights over ``length`` positions.

        A least sum below 0 means that weights may be negative.
        """
        return 1.0, 1.0

    def encoding_computations(self, lengths: Tensor) -> Tensor:
        """Return the scores computed by ``prepare`` for sources of ``lengths`` [B] tokens."""
        return torch.zeros_like(lengths)


def step_by_step(
    attention: Callable[..., Glimpse], queries: Tensor, feedback: Tensor, memory: Any, state: State
) -> tuple[Tensor, Tensor | None]:
    """Attend in all steps one after another; see ``Attention.sequence``."""
    contexts, gates = [], []
    for query, words in zip(queries.unbind(1), feedback.unbind(1), strict=True):
        glimpse = attention(query, words, memory, None, state)
        contexts.append(glimpse.context)
        if glimpse.gate is not None:
            gates.append(glimpse.gate)
        state = glimpse.state
    return torch.stack(contexts, dim=1), torch.stack(gates, dim=1) if gates else None


ATTENTIONS: dict[type[AttentionConfig], type[Attention]] = {}

Mechanism = TypeVar("Mechanism", bound=type[Attention])


def register(config: type[AttentionConfig]) -> Callable[[Mechanism], Mechanism]:
    """Register a mechanism under the class of its options.

    Raises:
        ValueError: The options have a mechanism already.
    """

    def enter(mechanism: Mechanism) -> Mechanism:
        if config in ATTENTIONS:
            raise ValueError(f"{config.__name__} has {ATTENTIONS[config].__name__} already")
        ATTENTIONS[config] = mechanism
        return mechanism

    return enter


def build_attention(config: AttentionConfig, sizes: Sizes) -> Attention:
    """Build the mechanism that the options name."""
    return ATTENTIONS[type(config)](sizes, config)
