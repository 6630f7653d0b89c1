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
    alone, never keys and values. Rows of hypotheses that were dropped stay. Layers that are
    computed in one call share a cache: L of them, otherwise one.

    Args:
        like: A tensor [.., D] of the layer's format and device.
        layers: L.
    """

    def __init__(self, like: Tensor, layers: int = 1) -> None:
        size = 2 * layers * like.shape[-1]
        self._rows = like.new_empty(0, size, dtype=precise(like.dtype))  # keys, then values
        self._count = 0

    @property
    def rows(self) -> Tensor:
        """Keys and values of every step so far, layer by layer, [R, L 2 D]."""
        return self._rows[: self._count]

    def add(self, rows: Tensor) -> Tensor:
        """Add rows [N, L 2 D]; return their places [N]."""
        rows = rows.to(self._rows.dtype)
        if torch.is_grad_enabled():
            self._rows = torch.cat([self.rows, rows])
            before, self._count = self._count, len(self._rows)
            return torch.arange(before, self._count, device=rows.device)
        places = self.make_room(len(rows))
        self._rows[self._count - len(rows) : self._count] = rows
        return places

    def make_room(self, count: int) -> Tensor:
        """Add ``count`` rows that are to be written; return their places [N]."""
        before, self._count = self._count, self._count + count
        if self._count > len(self._rows):
            room = self._rows.new_empty(2 * self._count, self._rows.shape[1])
            room[:before] = self._rows[:before]
            self._rows = room
        return torch.arange(before, self._count, device=self._rows.device)


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
