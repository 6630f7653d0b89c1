"""The contract of every attention mechanism, and the registry of those there are.

Legend: B sentences, S source positions after padding, N hypotheses, H encoder units (both
directions), Q decoder units, E embedding units.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from torch import Tensor, nn

from nmtflex.config import AttentionConfig

State = tuple[Tensor, ...]


class Sizes(NamedTuple):
    """Widths that a mechanism must fit, in units."""

    query: int  # Q
    feedback: int  # E
    states: int  # H
    keys: int  # inside the additive score


class Trace(NamedTuple):
    """What a step looked at; made only when asked for. None where a mechanism has no such thing."""

    computed: Tensor  # [N] score computations
    weights: Tensor | None = None  # [N, S]
    gate: Tensor | None = None  # [N]
    focus: Tensor | None = None  # [N], source positions
    window_start: Tensor | None = None  # [N], first position computed
    window_stop: Tensor | None = None  # [N], one past the last


class Attention(nn.Module, ABC):
    """Base of the mechanisms.

    Nothing of a sentence is kept on ``self``: ``prepare`` makes the memory once a sentence, a step
    reads it through ``rows`` and never copies it for the beam.
    """

    context_size: int  # units of a context vector, 0 for none

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
