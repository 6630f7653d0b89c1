"""Sinusoidal positions."""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor
from torch.nn import functional

from nmtflex.ops.tensors import precise

KEPT = 1024  # positions whose encodings are kept on the CPU


def sinusoids(positions: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """Return the encodings of positions that count from 0: [..] to [.., D].

    Vaswani et al. (2017), https://arxiv.org/abs/1706.03762, section 3.5, for i from 0::

        PE[pos, 2 i]     = sin(pos / 10000^(2 i / D))
        PE[pos, 2 i + 1] = cos(pos / 10000^(2 i / D))

    Departure: all sines come first, then all cosines, as in most programs; the weights that read
    them do not care. They exist for any position.

    Args:
        positions: Of any shape, integers.
        size: D; where it is odd, the last sine has no cosine.
        dtype: Format of the result.
    """
    if positions.device.type == "cpu" and positions.numel() and int(positions.max()) < KEPT:
        return functional.embedding(positions, _table(size, dtype))
    return _sinusoids(positions, size, dtype)


def _sinusoids(positions: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """Compute ``sinusoids``."""
    angles = positions.unsqueeze(-1) * _frequencies(size, precise(dtype), positions.device)
    return torch.cat([angles.sin(), angles.cos()[..., : size // 2]], dim=-1).to(dtype)


@functools.lru_cache(maxsize=4)
def _table(size: int, dtype: torch.dtype) -> Tensor:
    """Return the encodings of the first positions on the CPU; every step needs some."""
    with torch.inference_mode(False):  # a training may use them later
        return _sinusoids(torch.arange(KEPT), size, dtype)


@functools.lru_cache(maxsize=16)
def _frequencies(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return 10000^(-2 i / D) for each pair of a sine and a cosine; every step needs them."""
    with torch.inference_mode(False):  # a training may use them later
        steps = torch.arange((size + 1) // 2, dtype=dtype, device=device)
        return torch.exp(steps * (-2 * math.log(1e4) / size))
