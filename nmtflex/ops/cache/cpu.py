"""Attention to earlier steps in loops on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor

from nmtflex.ops.cache import loops, reference
from nmtflex.ops.threads import run_rows


def attend(query: Tensor, rows: Tensor, places: Tensor, heads: int) -> Tensor:
    """Attend without gathering; see ``nmtflex.ops.cache``. Gradients need the reference."""
    if torch.is_grad_enabled():
        return reference.attend(query, rows, places, heads)
    query, places = query.to(rows.dtype).contiguous(), places.contiguous()
    made = torch.zeros_like(query)
    units = places.numel() * rows.shape[1]
    parts = (part.numpy() for part in (query, rows, places, made))
    run_rows(loops.attend, len(query), units, heads, *parts)
    return made
