"""Self-attention with heads: over a source, and over the target so far.

Legend: B sentences, S positions after padding, M real tokens, N hypotheses, T steps, D units, h
heads.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from nmtflex.layers.linear import Product, glorot
from nmtflex.ops.cache import Cache, attend

State = tuple[Tensor, ...]


class Layout(NamedTuple):
    """Where the real tokens of a batch are; only these are computed outside of attention."""

    sentences: int  # B
    width: int  # S
    places: Tensor | None  # [M] in the flattened [B, S]; None: there is no padding
    mask: Tensor | None  # [B, 1, 1, S], True at real tokens; None: there is no padding

    def spread(self, tokens: Tensor) -> Tensor:
        """Lay tokens out with zeros at padding: [M, D] to [B, S, D]."""
        if self.places is not None:
            flat = tokens.new_zeros(self.sentences * self.width, tokens.shape[1])
            tokens = flat.index_copy(0, self.places, tokens)
        return tokens.view(self.sentences, self.width, -1)

    def collect(self, laid_out: Tensor) -> Tensor:
        """Undo ``spread``: [B, S, D] to [M, D]."""
        flat = laid_out.flatten(0, 1)
        return flat if self.places is None else flat.index_select(0, self.places)


class SelfAttention(nn.Module):
    """Every position attends to every position.

    Vaswani et al. (2017), https://arxiv.org/abs/1706.03762, section 3.2::

        softmax(Q_i K_i^T / sqrt(D / h)) V_i        for each head i, then a product W_O

    Args:
        size: D.
        heads: h, which divides D.
        dropout: Share of the weights dropped in training.
    """

    def __init__(self, size: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.inputs = glorot(Product(size, 3 * size), outputs=3)
        self.output = glorot(Product(size, size))
        self.heads = heads
        self.dropout = dropout

    def forward(self, x: Tensor, layout: Layout) -> Tensor:
        """Attend within each sentence: [M, D] to [M, D]."""
        together = layout.spread(_attended(self.inputs(x)))
        q, k, v = (self._split(part) for part in together.chunk(3, dim=2))
        return self.output(layout.collect(self._attend(q, k, v, layout.mask)))

    def _split(self, x: Tensor) -> Tensor:
        """Return the heads of [B, T, D] as [B, h, T, D / h]."""
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """Return contexts [B, T, D] of queries [B, h, T, D / h], keys and values alike."""
        dropout = self.dropout if self.training else 0.0
        with torch.autocast(q.device.type, enabled=False):
            found = functional.scaled_dot_product_attention(q, k, v, mask, dropout, causal)
        return found.transpose(1, 2).flatten(2)


class CausalSelfAttention(SelfAttention):
    """Every step attends to itself and to the steps before; Vaswani et al., section 3.2.3.

    Keys and values are in a cache that all hypotheses of a search share. The state is the places of
    a hypothesis's own steps in it, [N, T].
    """

    state_size = 1

    def start(self, x: Tensor) -> tuple[Cache, State]:
        """Return an empty cache, and the state before the first step of sentences x [B, D]."""
        return Cache(x), (torch.empty(len(x), 0, dtype=torch.long, device=x.device),)

    def step(self, x: Tensor, cache: Cache, state: State) -> tuple[Tensor, State]:
        """Advance one step: [N, D] to [N, D], and the new state."""
        size = x.shape[1]
        q, keys_and_values = self.inputs(x).split((size, 2 * size), dim=1)
        places = torch.cat([state[0], cache.add(keys_and_values).unsqueeze(1)], dim=1)
        return self.output(attend(q, cache.rows, places, self.heads)), (places,)

    def sequence(self, x: Tensor, state: State) -> Tensor:
        """Advance from the start by all steps: [B, T, D] to [B, T, D]."""
        q, k, v = map(self._split, _attended(self.inputs(x)).chunk(3, dim=2))
        return self.output(self._attend(q, k, v, causal=True))


def _attended(projections: Tensor) -> Tensor:
    """Return queries, keys and values in the format in which PyTorch attends fastest.

    On a CPU its backward pass takes three to six times as long in bfloat16 as in float32.
    """
    slow = projections.dtype == torch.bfloat16 and projections.device.type == "cpu"
    return projections.float() if slow else projections
