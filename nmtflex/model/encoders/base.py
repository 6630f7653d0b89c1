"""What every encoder does: it reads a batch of sources.

Legend: B sentences, S source positions after padding, H units of a state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from torch import Tensor, nn


class Encoded(NamedTuple):
    """A batch of sources, read."""

    states: Tensor  # [B, S, H], zeros at padding
    mask: Tensor  # [B, S], True at real tokens
    lengths: Tensor  # [B], where the states are
    summary: Tensor  # [B, H] of each source as a whole, for the start of a decoder


class Encoder(nn.Module, ABC):
    """Base of the encoders.

    Args:
        embedding: Source embedding, V to E.
        size: H, units of a state; nobody else computes it from options.
    """

    def __init__(self, embedding: nn.Embedding, size: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.size = size

    @abstractmethod
    def forward(self, source: Tensor, lengths: Tensor) -> Encoded:
        """Read a batch; a sentence's result depends on nothing else in it.

        Args:
            source: [B, S] token ids, padded.
            lengths: [B] tokens of each sentence, at least 1; on the CPU, wherever the source is.
        """
