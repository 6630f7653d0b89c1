"""Attention to earlier steps in plain PyTorch."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def attend(query: Tensor, rows: Tensor, places: Tensor, heads: int) -> Tensor:
    """Gather each hypothesis's rows and attend to them; see ``nmtflex.ops.cache``."""
    found = rows.index_select(0, places.flatten()).view(*places.shape, 2, heads, -1)
    keys, values = found.permute(2, 0, 3, 1, 4).unbind(0)  # [N, h, T, D / h]
    asked = query.to(rows.dtype).view(len(query), heads, 1, -1)
    return functional.scaled_dot_product_attention(asked, keys, values).flatten(1)
