"""The source as a memory of its positions: what global, local and flexible attention share.

``nmtflex.ops.attend`` does the work of a step. Legend: B sentences, S source positions, H encoder
units.
"""

from __future__ import annotations

from torch import Tensor

from nmtflex.attention.base import UNLIMITED, Attention, Limits, Sizes
from nmtflex.attention.scores import ScoreFunction, build_score
from nmtflex.ops.attend import Source, make_source
from nmtflex.ops.tensors import precise


class SourceAttention(Attention):
    """Base of the mechanisms that score source positions.

    Args:
        sizes: Widths of query, states and keys.
        score: Name of the score function.
    """

    def __init__(self, sizes: Sizes, score: str) -> None:
        super().__init__()
        self.context_size = sizes.states
        self.score = build_score(score, sizes)

    def prepare(
        self, states: Tensor, mask: Tensor, limits: Limits = UNLIMITED, keys: Tensor | None = None
    ) -> Source:
        """Project the keys once a sentence; see ``Attention.prepare``."""
        return read_source(self.score, states, mask, keys)


def read_source(
    score: ScoreFunction, states: Tensor, mask: Tensor, keys: Tensor | None = None
) -> Source:
    """Project the keys of encoder states, once a sentence; see ``Attention.prepare``."""
    return make_source(score.keys(states if keys is None else keys), states, mask.sum(1))


def real(tensor: Tensor, mask: Tensor) -> Tensor:
    """Return [B, S, D] with 0 where ``mask`` [B, S] is False: padding may hold NaN."""
    return tensor.masked_fill(~mask.unsqueeze(2), 0.0)


def exactly(tensor: Tensor) -> Tensor:
    """Return a tensor in float32 at least, which positions and penalties need."""
    return tensor.to(precise(tensor.dtype))
