"""The contract of every attention mechanism, and the registry of those there are.

Legend: B sentences, S source positions after padding, N hypotheses, H encoder units (both
directions), Q decoder units, E embedding units, K memory slots.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from nmtflex.config import AttentionConfig

State = tuple[Tensor, ...]


class Sizes(NamedTuple):
    """Widths that a mechanism must fit, in units, and the longest source it was made for."""

    query: int  # Q
    feedback: int  # E
    states: int  # H
    keys: int  # inside the additive score, the gate and the predicted centre
    source_length: int  # longest source of the training data, in tokens


class Trace(NamedTuple):
    """What a step looked at; made only when asked for. None where a mechanism has no such thing."""

    computed: Tensor  # [N] score computations
    weights: Tensor | None = None  # [N, S]
    gate: Tensor | None = None  # [N], 0 open to 1
    focus: Tensor | None = None  # [N], source positions from 0: of this step's weights (flexible,
    # whose window lies about the focus of the step before), or the window's centre (local)
    window_start: Tensor | None = None  # [N], first position computed
    window_stop: Tensor | None = None  # [N], one past the last
    beta: Tensor | None = None  # [N, K], weights over memory slots
    alpha: Tensor | None = None  # [B, S, K], each sentence's weights that filled the slots


class Attention(nn.Module, ABC):
    """Base of the mechanisms.

    Nothing of a sentence is kept on ``self``: ``prepare`` makes the memory once a sentence, a step
    reads it through ``rows`` and never copies it for the beam.
    """

    context_size: int  # units of a context vector, 0 for none
    gated: ClassVar[bool] = False  # has a gate: can be finetuned, and takes a threshold
    aligned: ClassVar[bool] = True  # has weights over source positions
    tau: float = math.inf  # threshold of the penalty, where there is one

    @abstractmethod
    def prepare(self, states: Tensor, mask: Tensor) -> Any:
        """Make the memory of a batch.

        Args:
            states: [B, S, H] encoder states.
            mask: [B, S], True at real tokens.

        Returns:
            A NamedTuple of tensors whose first dimension is B, or an empty one.
        """

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
    ) -> tuple[Tensor, State, Trace | None]:
        """Attend once for each of N hypotheses.

        Args:
            query: [N, Q] decoder state that the mechanism's paper names.
            feedback: [N, E] embedding of the previous output word.
            memory: What ``prepare`` made.
            rows: [N], ascending: the sentence of each hypothesis. None: hypothesis n is of
                sentence n, as in training.
            state: What ``start`` or the step before returned, [N, ...] each.
            trace: Whether to return a ``Trace``.

        Returns:
            The context [N, ``context_size``], the new state, and the trace or None.
        """

    def freeze(self, embedded: Tensor) -> Tensor:
        """Take what a step makes of the previous word alone out of the steps, for good.

        Args:
            embedded: [V, E] embedding of every target word.

        Returns:
            A row of ``forward``'s ``feedback`` from now on for every word, [V, ...].
        """
        return embedded

    def weight_sums(self, length: int) -> tuple[float, float]:
        """Return the least and the greatest sum of a step's weights over ``length`` positions."""
        return 1.0, 1.0

    def encoding_computations(self, lengths: Tensor) -> Tensor:
        """Return the scores computed by ``prepare`` for sources of ``lengths`` [B] tokens."""
        return torch.zeros_like(lengths)

    def set_threshold(self, tau: float) -> None:
        """Compute only positions with a penalty below ``tau`` from now on; inf computes all.

        Raises:
            ValueError: The mechanism has no penalty.
        """
        raise ValueError(f"{type(self).__name__} has no penalty to compare with {tau}")


ATTENTIONS: dict[type[AttentionConfig], type[Attention]] = {}

Mechanism = TypeVar("Mechanism", bound=type[Attention])


def register(config: type[AttentionConfig]) -> Callable[[Mechanism], Mechanism]:
    """Enter a mechanism under the class of its options.

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
