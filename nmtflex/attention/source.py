"""The source as a memory of its positions: what global, local and flexible attention share.

The work of a step is done in ``nmtflex.kernels``. Legend: B sentences, S source positions, H
encoder units.
"""

from __future__ import annotations

from torch import Tensor

from nmtflex.attention.scores import ScoreFunction
from nmtflex.ops.attend import Source, make_source
from nmtflex.ops.tensors import precise


def read_source(score: ScoreFunction, states: Tensor, mask: Tensor) -> Source:
    """Project the keys of encoder states [B, S, H], once a sentence."""
    return make_source(score.keys(states), states, mask.sum(1))


def exactly(tensor: Tensor) -> Tensor:
    """Return a tensor in float32 at least: positions and penalties lose too much in less."""
    return tensor.to(precise(tensor.dtype))
