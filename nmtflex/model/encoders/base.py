"""The base of the encoders, which read a batch of sources.

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
    first: Tensor | None = None  # [B], the positions of the first tokens of both sides, if not 0


class Encoder(nn.Module, ABC):
    """Base of the encoders.

    Args:
        embedding: Source embedding, V to E.
        size: H, units of a state.
    """

    def __init__(self, embedding: nn.Embedding, size: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.size = size

    @abstractmethod
    def forward(self, source: Tensor, lengths: Tensor) -> Encoded:
        """Read a batch; a sentence's result does not depend on the others.

        Args:
            source: [B, S] token ids, padded.
            lengths: [B] tokens of each sentence, at least 1; on the CPU.
        """
