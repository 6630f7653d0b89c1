"""The encoder: embeddings and a bidirectional LSTM or GRU."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from nmtflex.kernels.dropout import Dropout

RECURRENT: dict[str, type[nn.LSTM | nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}


class Encoded(NamedTuple):
    """A batch of sources, read."""

    states: Tensor  # [B, S, 2 D], zeros at padding
    mask: Tensor  # [B, S], True at real tokens
    final: Tensor  # [B, 2 D], last forward and first backward state


class Encoder(nn.Module):
    """Bidirectional recurrent encoder; dropout on each layer's input.

    Args:
        embedding: Source embedding, V to E.
        cell: Name in ``RECURRENT``.
        size: D, units of each direction.
        num_layers: Layers.
        dropout: Share of input units dropped in training.
    """

    def __init__(
        self, embedding: nn.Embedding, cell: str, size: int, num_layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.embedding = embedding
        inputs = [embedding.embedding_dim] + [2 * size] * (num_layers - 1)
        self.layers = nn.ModuleList(
            RECURRENT[cell](width, size, batch_first=True, bidirectional=True) for width in inputs
        )
        self.dropout = Dropout(dropout)

    def forward(self, source: Tensor, lengths: Tensor) -> Encoded:
        """Read a batch.

        Args:
            source: [B, S] token ids, padded.
            lengths: [B] tokens of each sentence, at least 1.
        """
        positions = torch.arange(source.shape[1], device=source.device)
        mask = positions < lengths.unsqueeze(1)
        states = self.embedding(source)
        on_cpu = lengths.cpu()
        for layer in self.layers:
            # Packed, a sentence's result depends on nothing else in its batch.
            packed = pack_padded_sequence(
                self.dropout(states), on_cpu, batch_first=True, enforce_sorted=False
            )
            output, last = layer(packed)
            states, _ = pad_packed_sequence(output, batch_first=True, total_length=source.shape[1])
        h = last[0] if isinstance(last, tuple) else last  # [2, B, D]
        return Encoded(states, mask, torch.cat([h[0], h[1]], dim=1))
