"""What the recurrent decoders share: cells, one attention mechanism, and a start from the summary.

Legend as in ``base``; the state is the cells' parts from the bottom layer up, then what the decoder
feeds itself, then the attention mechanism's own.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nmtflex.attention import UNLIMITED, Attention, Limits, Reuse, State
from nmtflex.attention.marking import prepare
from nmtflex.layers.cells import Stack
from nmtflex.layers.linear import Linear
from nmtflex.model.decoders.base import Decoder, Words
from nmtflex.model.encoders.base import Encoded


class RecurrentDecoder(Decoder):
    """Base of the recurrent decoders.

    Args:
        stack: The cells.
        attention: The mechanism.
        summary_size: Units of the encoder's summary.
        size: D.
        output_size: O, units of the vector that predicts a word.
    """

    def __init__(
        self,
        stack: Stack,
        attention: Attention | Reuse,
        summary_size: int,
        size: int,
        output_size: int,
    ) -> None:
        super().__init__(size, output_size)
        self.stack = stack
        self.attention = attention
        self.bridge = Linear(summary_size, stack.state_size * size)

    def mechanisms(self) -> list[Attention]:
        """Return the one mechanism."""
        return [self.attention.mechanism]

    def parts(self) -> dict[str, list[tuple[object, str]]]:
        """Return attention and the cells; see ``Decoder.parts``."""
        return {
            "attention": [(self.attention, "forward")],
            "recurrent cell": [(self.stack, "forward")],
        }

    def start(self, encoded: Encoded, limits: Limits = UNLIMITED) -> tuple[Any, State]:
        """Start each part of the cells' state as tanh(W summary); see ``Decoder.start``."""
        self.check(limits)
        memory = prepare(self.attention, encoded.states, encoded.mask, limits)
        parts = torch.tanh(self.bridge(encoded.summary)).chunk(self.stack.state_size, dim=1)
        attending = self.attention.start(encoded.states)
        return memory, (*parts, *self.start_fed(encoded), *attending)

    def start_fed(self, encoded: Encoded) -> State:
        """Return what the decoder feeds itself before the first step: nothing by default."""
        return ()

    def words(self, embedded: Tensor) -> Words:
        """Return the words' side of the cells' gates and of attention; see ``Decoder.words``."""
        return Words(self.stack.input_gates(embedded), self.attention.feedback(embedded))
