"""The encoder: embeddings and a bidirectional LSTM or GRU."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from nmtflex.kernels import as_on_gpu
from nmtflex.kernels.dropout import Dropout
from nmtflex.kernels.heap import ROWS
from nmtflex.model.device import upload

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
        self.size = 2 * size  # units of a state
        inputs = [embedding.embedding_dim] + [2 * size] * (num_layers - 1)
        self.layers = nn.ModuleList(
            RECURRENT[cell](width, size, batch_first=True, bidirectional=True) for width in inputs
        )
        self.dropout = Dropout(dropout)

    def forward(self, source: Tensor, lengths: Tensor) -> Encoded:
        """Read a batch.

        Args:
            source: [B, S] token ids, padded.
            lengths: [B] tokens of each sentence, at least 1; on the CPU, wherever the source is.
        """
        lengths, count = lengths.cpu(), len(source)
        if torch.is_autocast_enabled("cpu") and not as_on_gpu(source.device):
            source, lengths = _filled_up(source, lengths)
        positions = torch.arange(source.shape[1], device=source.device)
        mask = positions < upload(lengths, source.device).unsqueeze(1)
        states = self.embedding(source)
        # Sorted here and not by PyTorch, which would wait for a GPU at every layer.
        falling, order = torch.sort(lengths, descending=True, stable=True)
        back = upload(torch.argsort(order), source.device)
        order = upload(order, source.device)
        for layer in self.layers:
            # Packed, a sentence's result depends on nothing else in its batch.
            longest_first = self.dropout(states).index_select(0, order)
            packed = pack_padded_sequence(longest_first, falling, batch_first=True)
            output, last = _read(layer, packed)
            states, _ = pad_packed_sequence(output, batch_first=True, total_length=source.shape[1])
            states = states.index_select(0, back)
        h = last[0] if isinstance(last, tuple) else last  # [2, B, D]
        final = torch.cat([h[0], h[1]], dim=1).index_select(0, back)
        return Encoded(states[:count], mask[:count], final[:count])


def _filled_up(source: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Add sentences of padding until all tokens together, if not few, are a multiple of ``ROWS``.

    They are read in one product, for whose number of rows oneDNN keeps code (``kernels.heap``).

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
    """Run a recurrent layer in a format that it may have.

    Under autocast, whatever its format, cuDNN's recurrent layers run in float16, for whose range no
    loss is scaled here. On a GPU they run in float32 instead, and what follows has autocast's
    format, as on the CPU.
    """
    kind = packed.data.device.type
    if not (torch.is_autocast_enabled(kind) and as_on_gpu(packed.data.device)):
        return layer(packed)
    with torch.autocast(kind, enabled=False):
        output, last = layer(packed.float())
    return output.to(torch.get_autocast_dtype(kind)), last
