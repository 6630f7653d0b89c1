"""Global attention: every source position, every step."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from nmtflex.attention.base import Attention, Sizes, State, Trace, register
from nmtflex.attention.grouping import Groups
from nmtflex.attention.scores import build_score
from nmtflex.config import GlobalConfig


class GlobalMemory(NamedTuple):
    """A batch's source as global attention reads it."""

    keys: Tensor  # [B, S, A]
    values: Tensor  # [B, S, H]
    mask: Tensor  # [B, S], True at real tokens


@register(GlobalConfig)
class GlobalAttention(Attention):
    """Global attention.

    Bahdanau, Cho and Bengio (2015), https://arxiv.org/abs/1409.0473; in the words of Shu and
    Nakayama, eq. 1-3::

        a(s) = exp(score(h, k_s)) / sum over s' of exp(score(h, k_s'))        (2)
        c    = sum over s of a(s) k_s                                         (1)

    with the score functions of ``nmtflex.attention.scores``. ``h`` is h[t-1] under
    ``--decoder bahdanau`` and h[t] under ``--decoder luong``. The weights of a step sum to 1.

    Args:
        sizes: Widths of query, states and keys.
        config: ``score`` names the score function.
    """

    def __init__(self, sizes: Sizes, config: GlobalConfig) -> None:
        super().__init__()
        self.context_size = sizes.states
        self.score = build_score(config.score, sizes)

    def prepare(self, states: Tensor, mask: Tensor) -> GlobalMemory:
        """Project the keys once a sentence; see ``Attention.prepare``."""
        return GlobalMemory(self.score.keys(states), states, mask)

    def forward(
        self,
        query: Tensor,
        feedback: Tensor,
        memory: GlobalMemory,
        rows: Tensor | None,
        state: State,
        trace: bool = False,
    ) -> tuple[Tensor, State, Trace | None]:
        """Attend to all positions; see ``Attention.forward``."""
        groups = Groups(rows, len(memory.mask))
        keys, values, mask = (groups.memory(part) for part in memory)
        scores = self.score(groups.spread(query), keys)  # [G, W, S]
        scores = scores.masked_fill(~mask.unsqueeze(1), -torch.inf)
        weights = torch.softmax(scores, dim=2)
        context = groups.collect(weights @ values)  # [N, H]
        if not trace:
            return context, state, None
        lengths = memory.mask.sum(1)
        computed = lengths if rows is None else lengths[rows]
        return context, state, Trace(computed=computed, weights=groups.collect(weights))
