"""What decoders share: a step, from state and previous word to the vector that predicts the next.

Legend: N hypotheses (or sentences in training), E embedding units, D decoder units, C context
units, G gate units and whatever else a word contributes to a step, O output units.

The state is a flat tuple of tensors [N, ...]: the cells' parts from the bottom layer up, then what
the decoder feeds itself, then the attention mechanism's own. The search reorders its rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmtflex.attention import UNLIMITED, Attention, Limits, State, Trace
from nmtflex.layers.cells import Stack
from nmtflex.layers.linear import Linear, one_gradient
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


class Decoder(nn.Module, ABC):
    """Base of the decoders: cells, attention, and a start from the encoder's summary.

    Args:
        stack: The cells.
        attention: The mechanism.
        summary_size: Units of the encoder's summary.
        size: D.
        output_size: O, units of the vector that predicts a word.
    """

    def __init__(
        self, stack: Stack, attention: Attention, summary_size: int, size: int, output_size: int
    ) -> None:
        super().__init__()
        self.stack = stack
        self.attention = attention
        self.output_size = output_size
        self.word_size = stack.embedding_gates.out_features  # G
        self.bridge = Linear(summary_size, stack.state_size * size)

    def start(self, encoded: Encoded, limits: Limits = UNLIMITED) -> tuple[Any, State]:
        """Return the memory of a batch and the state before the first step, one row per sentence.

        Each part of the cells' state is tanh(W summary).

        Args:
            encoded: A batch of sources.
            limits: What the steps may skip.

        Raises:
            ValueError: There is a threshold, and the attention mechanism has no penalty.
        """
        if limits != UNLIMITED and not self.attention.gated:
            raise ValueError(
                f"{type(self.attention).__name__} has no penalty to compare with {limits.tau}"
            )
        memory = self.attention.prepare(encoded.states, encoded.mask, limits)
        parts = torch.tanh(self.bridge(encoded.summary)).chunk(self.stack.state_size, dim=1)
        attending = self.attention.start(encoded.states)
        return memory, (*parts, *self.start_fed(encoded), *attending)

    def start_fed(self, encoded: Encoded) -> State:
        """Return what the decoder feeds itself before the first step: nothing by default."""
        return ()

    def words(self, embedded: Tensor) -> Words:
        """Return what words contribute to a step, for one step, all steps or all words.

        Args:
            embedded: [.., E].
        """
        return Words(self.stack.input_gates(embedded), self.attention.feedback(embedded))

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

    def sequence(self, memory: Any, state: State, embedded: Tensor) -> tuple[Tensor, Tensor | None]:
        """Run over given words, one hypothesis a sentence.

        Equal to repeated calls of ``step``, which is what it does unless overridden.

        Args:
            memory: From ``start``.
            state: From ``start``.
            embedded: [B, T, E] of the words before each of T steps.

        Returns:
            Output vectors [B, T, O], and the gates [B, T] if attention has a gate.
        """
        words = self.words(embedded)  # all steps in one product
        outputs, gates = [], []
        with one_gradient(self):
            for step_words in zip(*(part.unbind(1) for part in words), strict=True):
                step = self.step(memory, None, state, Words(*step_words))
                state = step.state
                outputs.append(step.output)
                gates.append(step.gate)
        return torch.stack(outputs, dim=1), stacked(gates)


def stacked(gates: list[Tensor | None]) -> Tensor | None:
    """Return the gates [N] of all steps as [N, T], or None if there are none."""
    found = [gate for gate in gates if gate is not None]
    return torch.stack(found, dim=1) if found else None
