"""Self-attention by PyTorch's fused operation, over padded sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

if TYPE_CHECKING:
    from nmtflex.ops.self_attention import Layout, Options


SHORTEST_BLOCK = 64  # queries, so that a short reach takes few calls


def attend(projections: Tensor, layout: Layout, options: Options) -> Tensor:
    """Attend within each sentence; see ``nmtflex.ops.self_attention``."""
    if projections.dtype == torch.bfloat16 and projections.device.type == "cpu":
        # The backward pass takes three to six times as long in bfloat16 there.
        projections = projections.float()
    count = int(layout.lengths.sum())
    together = layout.spread(projections[:count])
    q, k, v = (_split(part, options.heads) for part in together.chunk(3, dim=2))
    mask = None if layout.mask is None else layout.mask[:, None, None]
    if options.reach is None:
        found = functional.scaled_dot_product_attention(
            q, k, v, mask, options.dropout, options.causal
        )
    else:
        found = _attend_near(q, k, v, mask, options, options.reach)
    contexts = layout.collect(found.transpose(1, 2).flatten(2))
    more = len(projections) - count
    return functional.pad(contexts, (0, 0, 0, more)) if more else contexts


def _split(x: Tensor, heads: int) -> Tensor:
    """Return the heads of [B, S, D] as [B, h, S, D / h]."""
    return x.view(*x.shape[:2], heads, -1).transpose(1, 2)


def _attend_near(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, options: Options, reach: int
) -> Tensor:
    """Attend to positions that are near, a block of queries at a time; all are [B, h, S, E]."""
    width, size, found = q.shape[2], max(reach, SHORTEST_BLOCK), []
    places = torch.arange(width, device=q.device)
    for low in range(0, width, size):
        high = min(low + size, width)
        first, last = max(low - reach, 0), min(high + reach, width)
        ahead = places[first:last] - places[low:high, None]
        seen = (ahead.abs() <= reach) & (ahead <= 0 if options.causal else True)
        if mask is not None:
            # A row of padding sees itself, for a softmax over nothing is NaN.
            seen = seen & mask[..., first:last] | (ahead == 0)
        near, values = k[:, :, first:last], v[:, :, first:last]
        found.append(
            functional.scaled_dot_product_attention(
                q[:, :, low:high], near, values, seen, options.dropout
            )
        )
    return torch.cat(found, dim=2) if found else q
