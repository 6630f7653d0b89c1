"""Attention weights with gradient, from any mechanism: marks on the states that it sums.

Legend: B sentences, S source positions, H units of a state, C of a context.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from nmtflex.attention.base import Limits


class Prepares(Protocol):
    """A mechanism, or what stands around one."""

    def prepare(
        self, states: Tensor, mask: Tensor, limits: Limits = ..., keys: Tensor | None = None
    ) -> Any:
        """Make the memory of a batch; see ``Attention.prepare``."""


def prepare(
    mechanism: Prepares,
    states: Tensor,
    mask: Tensor,
    limits: Limits,
    keys: Tensor | None = None,
) -> Any:
    """Make the memory of a batch, with marked states if ``limits`` ask for weights.

    A context is a sum of states, whatever weighs them. A marked state has S more numbers: 1 at its
    own position, else 0. Contexts of marked states therefore end in the weights of their sum, with
    gradient and from the same loops, at the price of S more units. See ``unmarked``.

    Args:
        mechanism: Any with weights over source positions.
        states: [B, S, H]; what they are scored by stays as it is.
        mask: [B, S], True at real tokens.
        limits: What the steps may skip, and whether weights are asked for.
        keys: As for ``Attention.prepare``.
    """
    if not limits.weights:
        return mechanism.prepare(states, mask, limits, keys)
    marks = torch.eye(states.shape[1], dtype=states.dtype, device=states.device)
    marked = torch.cat([states, marks.expand(len(states), -1, -1)], dim=2)  # [B, S, H + S]
    return mechanism.prepare(marked, mask, limits, states if keys is None else keys)


def unmarked(contexts: Tensor, size: int) -> tuple[Tensor, Tensor | None]:
    """Return contexts [.., C], and the weights [.., S] at their end if the states were marked.

    Args:
        contexts: [.., C] or [.., C + S].
        size: C.
    """
    if contexts.shape[-1] == size:
        return contexts, None
    return contexts[..., :size], contexts[..., size:]
