"""What decoders share: a step, from state and previous word to the vector that predicts the next.

Legend: N hypotheses (or sentences in training), E embedding units, D decoder units, C context
units, G gate units and whatever else a word contributes to a step, O output units.

The state is a flat tuple of tensors [N, ...], whose rows the search reorders.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmtflex.attention import UNLIMITED, Attention, Limits, Reuse, State, Trace
from nmtflex.layers.linear import one_gradient
from nmtflex.model.encoders.base import Encoded


class Words(NamedTuple):
    """What previous words contribute to one step [N, .] or to all steps [B, T, .].

    In decoding it is a table with a row for each word of the vocabulary.
    """

    gates: Tensor  # [.., G]
    feedback: Tensor  # [.., F], for the attention mechanism

    def of(self, tokens: Tensor) -> Words:
        """Look words [N] up in a table."""
        return Words(*(part.index_select(0, tokens) for part in self))


class Step(NamedTuple):
    """The result of a step of a decoder."""

    output: Tensor  # [N, O], from which the next word is predicted
    state: State  # [N, ...] each
    gate: Tensor | None  # [N] of the attention mechanism, with gradient, if it has one
    trace: Trace | None  # on request
    weights: Tensor | None = None  # [N, S] of attention, with gradient, if limits ask for them


class Steps(NamedTuple):
    """The result of all T steps of a decoder."""

    outputs: Tensor  # [B, T, O]
    gates: Tensor | None  # [B, T], if attention has a gate
    weights: Tensor | None = None  # [B, T, S] of attention, if limits ask for them


class Decoder(nn.Module, ABC):
    """Base of the decoders.

    Args:
        size: D.
        output_size: O, units of the vector that predicts a word.
    """

    heads = 1  # of each attending layer

    def __init__(self, size: int, output_size: int) -> None:
        super().__init__()
        self.size = size
        self.output_size = output_size

    @abstractmethod
    def mechanisms(self) -> list[Attention]:
        """Return the attention mechanism of each attending layer, from the bottom."""

    @property
    def reuses(self) -> bool:
        """Whether steps may take the last context again."""
        return any(isinstance(part, Reuse) for part in self.modules())

    @abstractmethod
    def parts(self) -> dict[str, list[tuple[object, str]]]:
        """Return the methods in which a step spends its time, by part, for a stopwatch."""

    @abstractmethod
    def start(self, encoded: Encoded, limits: Limits = UNLIMITED) -> tuple[Any, State]:
        """Return the memory of a batch and the state before the first step, one row per sentence.

        Args:
            encoded: A batch of sources.
            limits: What the steps may skip.

        Raises:
            ValueError: There is a threshold, and the attention mechanism has no penalty, or no step
                may reuse a context; or traces are asked for of a layer or a head that does not
                exist.
        """

    def check(self, limits: Limits) -> None:
        """Raise ``ValueError`` if limits do not fit; see ``start``."""
        mechanisms = self.mechanisms()
        if limits.tau < math.inf and not mechanisms[0].gated:
            raise ValueError(
                f"{type(mechanisms[0]).__name__} has no penalty to compare with {limits.tau}"
            )
        if limits.reuse > 0 and not self.reuses:
            raise ValueError(f"no gate of reuse to compare with {limits.reuse}")
        for asked, count in ((limits.layer, len(mechanisms)), (limits.head, self.heads)):
            if asked is not None and not 0 <= asked < count:
                raise ValueError(f"no {asked} among {count} attending layers or heads: {limits}")

    @abstractmethod
    def words(self, embedded: Tensor) -> Words:
        """Return what words contribute to a step, for one step, all steps or all words.

        Args:
            embedded: [.., E].
        """

    @abstractmethod
    def step(
        self, memory: Any, rows: Tensor | None, state: State, words: Words, trace: bool = False
    ) -> Step:
        """Advance one step.

        Args:
            memory: From ``start``.
            rows: [N], ascending: the sentence of each hypothesis; None for one each.
            state: From ``start`` or the step before.
            words: Of the previous words, one row per hypothesis.
            trace: Whether to return the attention's trace.
        """

    def sequence(self, memory: Any, state: State, embedded: Tensor) -> Steps:
        """Run over given words, one hypothesis a sentence.

        Equal to repeated calls of ``step``, which is what it does unless overridden.

        Args:
            memory: From ``start``.
            state: From ``start``.
            embedded: [B, T, E] of the words before each of T steps.
        """
        words = self.words(embedded)  # all steps in one product
        outputs, gates, weights = [], [], []
        with one_gradient(self):
            for step_words in zip(*(part.unbind(1) for part in words), strict=True):
                step = self.step(memory, None, state, Words(*step_words))
                state = step.state
                outputs.append(step.output)
                gates.append(step.gate)
                weights.append(step.weights)
        return Steps(torch.stack(outputs, dim=1), stacked(gates), stacked(weights))


def stacked(parts: list[Tensor | None]) -> Tensor | None:
    """Return the gates [N] or weights [N, S] of all steps as [N, T, ..]; None if there are none."""
    found = [part for part in parts if part is not None]
    return torch.stack(found, dim=1) if found else None
