"""The transformer encoder: embeddings with positions, then layers of self-attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from nmtflex.layers.dropout import Dropout
from nmtflex.layers.feed_forward import FeedForward, Feeding
from nmtflex.layers.positions import sinusoids
from nmtflex.layers.residual import Residual
from nmtflex.layers.self_attention import SelfAttention
from nmtflex.model.encoders.base import Encoded, Encoder
from nmtflex.ops.heap import rounded
from nmtflex.ops.self_attention import Layout
from nmtflex.ops.tensors import upload


class EncoderLayer(Feeding):
    """Self-attention, then a feed-forward layer; Vaswani et al. (2017), section 3.1.

    Args:
        size: H.
        attention: The first sublayer.
        feed_forward: The second.
        pre_norm: Whether the norms come before the sublayers.
        dropout: Share of each sublayer's outputs dropped in training.
    """

    def __init__(
        self,
        size: int,
        attention: SelfAttention,
        feed_forward: FeedForward,
        pre_norm: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.around_attention = Residual(size, pre_norm, dropout)
        self.around_feed_forward = Residual(size, pre_norm, dropout)

    def forward(self, x: Tensor, layout: Layout) -> Tensor:
        """Return [M, H] of real tokens [M, H]."""
        y = self.attention(self.around_attention.enter(x), layout)
        return self.feed(self.around_attention.leave(x, y))


class TransformerEncoder(Encoder):
    """Transformer encoder.

    Vaswani et al. (2017), https://arxiv.org/abs/1706.03762, section 3. Padding is computed in the
    products of queries and keys alone. The summary is the mean of the states.

    In training, the positions of each sentence can count from a random number, so that the model
    knows positions that few sources reach: Kiyono et al. (2021), "SHAPE: Shifted Absolute Position
    Embedding for Transformers", https://aclanthology.org/2021.emnlp-main.266. A decoder with
    positions counts from the same number, so that equal positions still tell it where to look.

    Args:
        embedding: Source embedding, V to H.
        layers: From the bottom.
        pre_norm: Whether the layers normalise their inputs, so that the last sum needs a norm.
        dropout: Share of embeddings dropped in training.
        most_shift: Largest first position in training, drawn uniformly.
    """

    fast_layers: Callable[[Tensor, Tensor], Tensor] | None = None  # for weights that do not change

    def __init__(
        self,
        embedding: nn.Embedding,
        layers: Sequence[EncoderLayer],
        pre_norm: bool,
        dropout: float,
        most_shift: int = 0,
    ) -> None:
        super().__init__(embedding, embedding.embedding_dim)
        self.layers = nn.ModuleList(layers)
        self.norm = nn.LayerNorm(self.size) if pre_norm else None
        self.dropout = Dropout(dropout)
        self.most_shift = most_shift

    def forward(self, source: Tensor, lengths: Tensor) -> Encoded:
        """Read a batch; see ``Encoder.forward``."""
        device, (sentences, width) = source.device, source.shape
        layout, real = Layout.of(lengths.cpu(), width, device), upload(lengths, device)
        tokens = source.flatten()
        positions = torch.arange(width, device=device).expand(sentences, -1)
        first = self._first(sentences, device)
        positions = (positions if first is None else positions + first.unsqueeze(1)).flatten()
        if layout.places is not None:
            tokens, positions = tokens[layout.places], positions[layout.places]
        x = self.embedding(tokens)
        x = self.dropout(x + sinusoids(positions, self.size, x.dtype))
        if self.fast_layers is not None:
            x = self.fast_layers(x, lengths)
        else:
            x = self._through(x, layout)
        states = layout.spread(x)
        summary = states.sum(1) / real.unsqueeze(1)
        return Encoded(states, layout.inside(device), real, summary, first)

    def _first(self, sentences: int, device: torch.device) -> Tensor | None:
        """Draw the first position of each sentence [B]; None stands for 0."""
        if not self.training or not self.most_shift:
            return None
        return upload(torch.randint(self.most_shift + 1, (sentences,)), device)

    def all_layers(self) -> Sequence[EncoderLayer]:
        """Return the layers, from the bottom."""
        return cast("Sequence[EncoderLayer]", self.layers)

    def _through(self, x: Tensor, layout: Layout) -> Tensor:
        """Return what the layers make of real tokens [M, H]."""
        count = len(x)
        if torch.is_autocast_enabled(x.device.type):
            x = rounded(x)  # once for the products of all layers
        for layer in self.layers:
            x = layer(x, layout)
        return (x if self.norm is None else self.norm(x))[:count]
