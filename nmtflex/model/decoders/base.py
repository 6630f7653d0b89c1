"""What decoders share: a step from a state and the previous word to the next word's vector.

Legend: N hypotheses (or sentences in training), E embedding units, D decoder units, C context
units, G gate units and whatever else a word brings into a step, O output units.

The state is a flat tuple of tensors [N, ...]: the cells' parts from the bottom layer up, then what
the decoder feeds itself, then the attention mechanism's own. The search reorders it blindly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from nmtflex.attention import Attention, State, Trace
from nmtflex.layers.cells import Stack
from nmtflex.layers.linear import Linear
from nmtflex.model.encoders.recurrent import Encoded


class Decoder(nn.Module, ABC):
    """What the two decoders share: cells, attention, and a start from the encoder's final state.

    Args:
        stack: The cells.
        attention: The mechanism.
        encoded_size: Units of the encoder's final state.
        size: D.
        output_size: O, units of the vector that predicts a word.
    """

    def __init__(
        self, stack: Stack, attention: Attention, encoded_size: int, size: int, output_size: int
    ) -> None:
        super().__init__()
        self.stack = stack
        self.attention = attention
        self.output_size = output_size
        self.word_size = stack.embedding_gates.out_features  # G
        self.bridge = Linear(encoded_size, stack.state_size * size)

    def start(self, encoded: Encoded) -> State:
        """Return the state before the first step, a row a sentence: each part tanh(W final)."""
        parts = torch.tanh(self.bridge(encoded.final)).chunk(self.stack.state_size, dim=1)
        return (*parts, *self.start_fed(encoded), *self.attention.start(encoded.states))

    def start_fed(self, encoded: Encoded) -> State:
        """Return what the decoder feeds itself before the first step: nothing, unless it does."""
        return ()

    def input_gates(self, embedded: Tensor) -> Tensor:
        """Return the words' side of the gates, for one step or all: [.., E] to [.., G]."""
        return self.stack.input_gates(embedded)

    @abstractmethod
    def forward(
        self,
        gates: Tensor,
        feedback: Tensor,
        memory: Any,
        rows: Tensor | None,
        state: State,
        trace: bool = False,
    ) -> tuple[Tensor, State, Trace | None]:
        """Advance one step.

        Args:
            gates: [N, G] from ``input_gates`` of the previous word.
            feedback: [N, E] embedding of the previous word, for the attention mechanism.
            memory: What the attention mechanism prepared.
            rows: [N] sentence of each hypothesis, or None for one each.
            state: The state of the step before.
            trace: Whether to return the attention's trace.

        Returns:
            The output vector [N, O], the new state, and the trace or None.
        """
