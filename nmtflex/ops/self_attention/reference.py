"""Self-attention by PyTorch's fused operation, over padded sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

if TYPE_CHECKING:
    from nmtflex.ops.self_attention import Layout


def attend(projections: Tensor, layout: Layout, heads: int, dropout: float, causal: bool) -> Tensor:
    """Attend within each sentence; see ``nmtflex.ops.self_attention``."""
    if projections.dtype == torch.bfloat16 and projections.device.type == "cpu":
        # The backward pass takes three to six times as long in bfloat16 there.
        projections = projections.float()
    count = int(layout.lengths.sum())
    together = layout.spread(projections[:count])
    q, k, v = (_split(part, heads) for part in together.chunk(3, dim=2))
    mask = None if layout.mask is None else layout.mask[:, None, None]
    found = functional.scaled_dot_product_attention(q, k, v, mask, dropout, causal)
    contexts = layout.collect(found.transpose(1, 2).flatten(2))
    more = len(projections) - count
    return functional.pad(contexts, (0, 0, 0, more)) if more else contexts


def _split(x: Tensor, heads: int) -> Tensor:
    """Return the heads of [B, S, D] as [B, h, S, D / h]."""
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)
