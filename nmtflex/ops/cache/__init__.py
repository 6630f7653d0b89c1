"""Attention to the keys and values of earlier steps, which lie where each step left them.

Legend: N hypotheses, T steps so far, R rows of a cache, D units, h heads.
"""

from __future__ import annotations

import torch
from torch import Tensor

from nmtflex.ops.dispatch import implementation
from nmtflex.ops.tensors import precise


class Cache:
    """Keys and values of all hypotheses and steps of a search; rows are only ever added.

    A hypothesis knows the places of its own steps, so reordering hypotheses moves those numbers
    alone, never keys and values. Rows of hypotheses that were dropped stay.

    Args:
        like: A tensor [.., D] of the layer's format and device.
    """

    def __init__(self, like: Tensor) -> None:
        size = 2 * like.shape[-1]
        self._rows = like.new_empty(0, size, dtype=precise(like.dtype))  # keys, then values
        self._count = 0

    @property
    def rows(self) -> Tensor:
        """Keys and values of every step so far, [R, 2 D]."""
        return self._rows[: self._count]

    def add(self, rows: Tensor) -> Tensor:
        """Add rows [N, 2 D]; return their places [N]."""
        before, self._count = self._count, self._count + len(rows)
        rows = rows.to(self._rows.dtype)
        if torch.is_grad_enabled():
            self._rows = torch.cat([self._rows[:before], rows])
        else:
            if self._count > len(self._rows):
                room = self._rows.new_empty(2 * self._count, rows.shape[1])
                room[:before] = self._rows[:before]
                self._rows = room
            self._rows[before : self._count] = rows
        return torch.arange(before, self._count, device=rows.device)


def attend(query: Tensor, rows: Tensor, places: Tensor, heads: int) -> Tensor:
    """Attend to the steps of each hypothesis, with heads.

    Vaswani et al. (2017), eq. 1, for each head: softmax(q k^T / sqrt(D / h)) v.

    Args:
        query: [N, D].
        rows: [R, 2 D], keys, then values, as in ``Cache.rows``.
        places: [N, T], the row of each step of each hypothesis.
        heads: h.

    Returns:
        [N, D], in the format of the rows.
    """
    return implementation("cache", query.device).attend(query, rows, places, heads)
