"""Self-attention with heads: over a source, and over the target so far.

Legend: B sentences, S positions after padding, M real tokens, N hypotheses, T steps, D units, h
heads.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmtflex.layers.linear import Product, glorot
from nmtflex.ops.cache import Cache
from nmtflex.ops.cache import attend as attend_cached
from nmtflex.ops.self_attention import Layout, attend

State = tuple[Tensor, ...]


class SelfAttention(nn.Module):
    """Every position attends to every position, or to those near it.

    Vaswani et al. (2017), https://arxiv.org/abs/1706.03762, section 3.2::

        softmax(Q_i K_i^T / sqrt(D / h)) V_i        for each head i, then a product W_O

    Args:
        size: D.
        heads: h, which divides D.
        dropout: Share of the weights dropped in training.
        reach: How many positions before it, and after it, one attends to; None: to all.
    """

    def __init__(self, size: int, heads: int, dropout: float, reach: int | None = None) -> None:
        super().__init__()
        self.inputs = glorot(Product(size, 3 * size), outputs=3)
        self.output = glorot(Product(size, size))
        self.heads, self.dropout, self.reach = heads, dropout, reach

    def forward(self, x: Tensor, layout: Layout, causal: bool = False) -> Tensor:
        """Attend within each sentence, if causal not to later tokens: [M, D] to [M, D]."""
        dropout = self.dropout if self.training else 0.0
        contexts = attend(self.inputs(x), layout, self.heads, dropout, causal, self.reach)
        return self.output(contexts)


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
        return self.output(attend_cached(q, cache.rows, places, self.heads)), (places,)

    def sequence(self, x: Tensor, state: State) -> Tensor:
        """Advance from the start by all steps: [B, T, D] to [B, T, D]."""
        return self(x.flatten(0, 1), Layout.full(*x.shape[:2]), causal=True).view(x.shape)
