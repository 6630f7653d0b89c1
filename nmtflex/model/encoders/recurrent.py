"""The recurrent encoder: embeddings and a bidirectional LSTM or GRU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from nmtflex.layers.dropout import Dropout
from nmtflex.model.encoders.base import Encoded, Encoder
from nmtflex.ops.dispatch import as_on_gpu
from nmtflex.ops.heap import ROWS
from nmtflex.ops.recurrent.sequence import needs_float32
from nmtflex.ops.tensors import upload

RECURRENT: dict[str, type[nn.LSTM | nn.GRU]] = {"lstm": nn.LSTM, "gru": nn.GRU}


class RecurrentEncoder(Encoder):
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
        super().__init__(embedding, 2 * size)
        inputs = [embedding.embedding_dim] + [2 * size] * (num_layers - 1)
        self.layers = nn.ModuleList(
            RECURRENT[cell](width, size, batch_first=True, bidirectional=True) for width in inputs
        )
        self.dropout = Dropout(dropout)

    def forward(self, source: Tensor, lengths: Tensor) -> Encoded:
        """Read a batch; see ``Encoder.forward``. The summary is [last forward; first backward].

        States have D units of each direction: H = 2 D.
        """
        lengths, count = lengths.cpu(), len(source)
        if torch.is_autocast_enabled("cpu") and not as_on_gpu(source.device):
            source, lengths = _filled_up(source, lengths)
        positions = torch.arange(source.shape[1], device=source.device)
        real = upload(lengths, source.device)
        mask = positions < real.unsqueeze(1)
        states = self.embedding(source)
        # Sorted here, since PyTorch would wait for a GPU at every layer.
        falling, order = torch.sort(lengths, descending=True, stable=True)
        back = upload(torch.argsort(order), source.device)
        order = upload(order, source.device)
        for layer in self.layers:
            # Packed, so that a sentence's result does not depend on the others.
            longest_first = self.dropout(states).index_select(0, order)
            packed = pack_padded_sequence(longest_first, falling, batch_first=True)
            output, last = _read(layer, packed)
            states, _ = pad_packed_sequence(output, batch_first=True, total_length=source.shape[1])
            states = states.index_select(0, back)
        h = last[0] if isinstance(last, tuple) else last  # [2, B, D]
        summary = torch.cat([h[0], h[1]], dim=1).index_select(0, back)
        return Encoded(states[:count], mask[:count], real[:count], summary[:count])


def _filled_up(source: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Add sentences of padding until the tokens, if at least ``ROWS``, are a multiple of ``ROWS``.

    They are read in one product, and oneDNN keeps code for each number of rows (``ops.heap``).

    Args:
        source: [B, S].
        lengths: [B].
    """
    total = int(lengths.sum())
    if total < ROWS:
        return source, lengths
    full, rest = divmod(-total % ROWS, source.shape[1])
    added = lengths.new_tensor([source.shape[1]] * full + [rest] * (rest > 0))
    sentences = source.new_zeros(len(added), source.shape[1])
    return torch.cat([source, sentences]), torch.cat([lengths, added])


def _read(layer: nn.Module, packed: PackedSequence) -> tuple[PackedSequence, Any]:
    """Run a recurrent layer; in float32 under autocast where ``needs_float32`` says so."""
    kind = packed.data.device.type
    if not (torch.is_autocast_enabled(kind) and needs_float32(packed.data.device)):
        return layer(packed)
    with torch.autocast(kind, enabled=False):
        output, last = layer(packed.float())
    return output.to(torch.get_autocast_dtype(kind)), last
