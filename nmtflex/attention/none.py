"""No attention: the baseline of Britz, Guan and Luong (2017)."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from torch import Tensor

from nmtflex.attention.base import (
    UNLIMITED,
    Attention,
    Glimpse,
    Limits,
    Sizes,
    State,
    Trace,
    register,
)
from nmtflex.config import NoneConfig


class NoMemory(NamedTuple):
    """Nothing is kept of the source."""


@register(NoneConfig)
class NoAttention(Attention):
    """The decoder sees only the encoder's final state, as its start.

    Britz, Guan and Luong (2017), https://arxiv.org/abs/1707.00110, the non-attention baseline of
    the copy task. The context has no units, so it costs nothing.
    """

    aligned: ClassVar[bool] = False

    def __init__(self, sizes: Sizes, config: NoneConfig) -> None:
        super().__init__()
        self.context_size = 0

    def prepare(
        self, states: Tensor, mask: Tensor, limits: Limits = UNLIMITED, keys: Tensor | None = None
    ) -> NoMemory:
        """Keep nothing."""
        return NoMemory()

    def forward(
        self,
        query: Tensor,
        feedback: Tensor,
        memory: NoMemory,
        rows: Tensor | None,
        state: State,
        trace: bool = False,
    ) -> Glimpse:
        """Return a context [N, 0]."""
        seen = Trace(computed=query.new_zeros(len(query)).long()) if trace else None
        return Glimpse(query.new_empty(len(query), 0), state, trace=seen)
