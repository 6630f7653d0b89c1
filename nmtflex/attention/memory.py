"""Memory attention: the source as K vectors."""

from __future__ import annotations

from typing import NamedTuple

import torch
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
from nmtflex.attention.grouping import summed
from nmtflex.config import MemoryConfig
from nmtflex.layers.linear import Linear, Product, widened
from nmtflex.ops.tensors import precise


class Slots(NamedTuple):
    """A batch's source in K vectors a sentence."""

    slots: Tensor  # [B, K, H], the matrix C
    alpha: Tensor  # [B, S, K], what filled it, 0 at padding; for traces, see ``Limits.kept``


@register(MemoryConfig)
class MemoryAttention(Attention):
    """Fixed-size memory attention.

    Britz, Guan and Luong (2017), "Efficient Attention using a Fixed-Size Memory Representation",
    https://arxiv.org/abs/1707.00110, eq. 7, 8 and 11::

        alpha[s] = f(W_alpha states[s] * l[s])             K scores a source position      (7, 11)
        C[k]     = sum over s of alpha[s, k] states[s]     once a sentence                 (7)
        beta     = f(W_beta h)                             K scores a step                 (8)
        c        = sum over k of beta[k] C[k]                                              (8)

    f is softmax over the K slots (not over the source) or sigmoid, on either side. l are the
    position encodings of ``position_encoding``; without them l = 1. The decoder never touches the
    encoder states: a step costs K scores, whatever the length of the source. Shown as an alignment,
    the weight of a source position is the sum over k of alpha[s, k] beta[k].

    Departures: none in the equations; for the encodings' normalisation, on which the paper is
    brief, see ``position_encoding``. How weights begin, the paper does not say; see ``widened``.

    Args:
        sizes: Widths of query and states, and the longest source of the training data.
        config: ``K``, ``encoder_scoring``, ``decoder_scoring``, ``position_encoding``.
    """

    def __init__(self, sizes: Sizes, config: MemoryConfig) -> None:
        super().__init__()
        self.context_size = sizes.states
        self.alpha = widened(Linear(sizes.states, config.K, bias=False))
        self.beta = widened(Product(sizes.query, config.K, bias=False))
        self.config = config
        self.source_length = sizes.source_length

    def prepare(
        self, states: Tensor, mask: Tensor, limits: Limits = UNLIMITED, keys: Tensor | None = None
    ) -> Slots:
        """Fill the slots; see ``Attention.prepare``."""
        logits = self._logits(states if keys is None else keys, mask)
        alpha = _scored(logits, self.config.encoder_scoring) * mask.unsqueeze(2)
        return Slots(alpha.transpose(1, 2) @ states, limits.kept(alpha))

    def _logits(self, keys: Tensor, mask: Tensor) -> Tensor:
        """Return W_alpha keys * l, [B, S, K]."""
        logits = self.alpha(keys)
        if not self.config.position_encoding:
            return logits
        exact = precise(logits.dtype)
        encoding = position_encoding(mask, self.config.K, self.source_length, exact)
        return logits * encoding.to(logits.dtype)

    def forward(
        self,
        query: Tensor,
        feedback: Tensor,
        memory: Slots,
        rows: Tensor | None,
        state: State,
        trace: bool = False,
    ) -> Glimpse:
        """Weigh the slots; see ``Attention.forward``."""
        beta = _scored(self.beta(query), self.config.decoder_scoring)  # [N, K]
        context = summed(beta, memory.slots, rows)
        if not trace:
            return Glimpse(context, state)
        seen = Trace(
            computed=torch.full((len(beta),), self.config.K, device=beta.device),
            weights=summed(beta, memory.alpha.transpose(1, 2), rows),
            beta=beta,
            alpha=memory.alpha,
        )
        return Glimpse(context, state, trace=seen)

    def sequence(
        self, queries: Tensor, feedback: Tensor, memory: Slots, state: State
    ) -> tuple[Tensor, None]:
        """Weigh the slots in all steps; see ``Attention.sequence``."""
        logits = self.beta(queries.flatten(0, 1)).unflatten(0, queries.shape[:2])
        return _scored(logits, self.config.decoder_scoring) @ memory.slots, None

    def weight_sums(self, length: int) -> tuple[float, float]:
        """A position weighs at most 1, or K where both sides are sigmoid."""
        both = self.config.encoder_scoring == self.config.decoder_scoring == "sigmoid"
        return 0.0, float(length * (self.config.K if both else 1))

    def encoding_computations(self, lengths: Tensor) -> Tensor:
        """K scores a source position."""
        return self.config.K * lengths


def position_encoding(
    mask: Tensor, num_slots: int, source_length: int, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Return the factors l [B, S, K] that draw early slots to the beginning, late ones to the end.

    Britz, Guan and Luong (2017), eq. 12, for k = 1..K and s = 1..S::

        L[k, s] = (1 - k/K) (1 - s/S) + (k/K) (s/S)

    S is the longest source of the training data, and positions beyond it count as S. Each slot's
    row is then scaled to mean 1 over the sentence's real positions: the paper says "renormalized
    across the timestep dimension" only, and a sum of 1 would shrink all logits of a long sentence.

    Args:
        mask: [B, S], True at real tokens.
        num_slots: K.
        source_length: S of the equation, in tokens.
        dtype: Of the factors.
    """
    # In float64, so that padding does not show in the means.
    steps = torch.arange(1, mask.shape[1] + 1, dtype=torch.float64, device=mask.device)
    place = (steps.clamp(max=source_length) / source_length).unsqueeze(1)  # [S, 1]
    slot = torch.arange(1, num_slots + 1, dtype=torch.float64, device=mask.device) / num_slots
    surface = (1 - slot) * (1 - place) + slot * place  # [S, K]
    sums = mask.to(surface.dtype) @ surface  # [B, K]
    means = (sums / mask.sum(1, keepdim=True)).unsqueeze(1)
    return surface.to(dtype) / means.to(dtype)


def _scored(logits: Tensor, scoring: str) -> Tensor:
    """Apply f to logits [..., K]."""
    return torch.softmax(logits, dim=-1) if scoring == "softmax" else torch.sigmoid(logits)
