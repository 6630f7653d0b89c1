"""Attention with bounded-memory control (ABC): keys and values of K slots."""

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
from nmtflex.attention.scores import build_score
from nmtflex.attention.source import exactly, real
from nmtflex.config import AbcConfig
from nmtflex.layers.linear import Linear, widened
from nmtflex.ops.attend import Source, attend, make_source
from nmtflex.ops.tensors import full_precision


class BoundedMemory(NamedTuple):
    """A batch's source in K slots a sentence."""

    slots: Source  # keys and values [B, K, ..], as if a slot were a source position
    phi: Tensor  # [B, S, K], what filled them, 0 at padding; for traces, see ``Limits.kept``


@register(AbcConfig)
class AbcAttention(Attention):
    """Attention with bounded-memory control, with the learned control of ABC_MLP.

    Peng, Kasai, Pappas, Yogatama, Wu, Kong, Schwartz and Smith (2022), "ABC: Attention with
    Bounded-memory Control", https://arxiv.org/abs/2110.02488, as cross-attention::

        phi[s, k] = exp(W_phi k_s)[k] / sum over s' of exp(W_phi k_s')[k]    S K scores a sentence
        K~[k]     = sum over s of phi[s, k] k_s                              once a sentence
        V~[k]     = sum over s of phi[s, k] v_s                              once a sentence
        beta      = softmax over k of score(h, K~[k])                        K scores a step
        c         = sum over k of beta[k] V~[k]

    k_s and v_s are the key and the value of source position s: with heads two projections of its
    encoder state, otherwise both the state itself. A step costs K scores, whatever the length of
    the source. Shown as an alignment, the weight of a source position is the sum over k of
    phi[s, k] beta[k]; these weights sum to 1.

    ``MemoryAttention`` is a relative with three differences. There alpha[s, k] is a sigmoid, or a
    softmax over the slots, so that a slot is a sum that grows with the source; here a slot is a
    mean, because phi is normalised over the source. There slot k is read by beta = f(W_beta h),
    from the query alone; here the query is compared with what the slot holds, K~[k]. There position
    encodings may tell the slots apart; here only the rows of W_phi do.

    Departures: the score function is any of ``nmtflex.attention.scores`` (the paper's is ``dot``
    with heads); with heads, one W_phi serves all of them. Scores of phi and the sums over the
    source are float32 at least.

    Args:
        sizes: Widths of query, states and keys.
        config: ``K``, ``score``.
    """

    def __init__(self, sizes: Sizes, config: AbcConfig) -> None:
        super().__init__()
        self.context_size = sizes.states
        self.score = build_score(config.score, sizes)
        self.phi = widened(Linear(sizes.states, config.K, bias=False))  # a bias would cancel out

    def prepare(
        self, states: Tensor, mask: Tensor, limits: Limits = UNLIMITED, keys: Tensor | None = None
    ) -> BoundedMemory:
        """Fill the slots; see ``Attention.prepare``."""
        values = real(states, mask)
        keys = values if keys is None else real(keys, mask)
        logits = exactly(self.phi(keys)).masked_fill(~mask.unsqueeze(2), -torch.inf)
        phi = torch.softmax(logits, dim=1)  # [B, S, K]
        with full_precision(states.device):
            filling = phi.transpose(1, 2)
            slot_keys = (filling @ keys.to(phi.dtype)).to(keys.dtype)
            slot_values = (filling @ values.to(phi.dtype)).to(values.dtype)
        count = mask.new_full((len(mask),), phi.shape[2], dtype=torch.long)
        slots = make_source(self.score.keys(slot_keys), slot_values, count)
        return BoundedMemory(slots, limits.kept(phi))

    def forward(
        self,
        query: Tensor,
        feedback: Tensor,
        memory: BoundedMemory,
        rows: Tensor | None,
        state: State,
        trace: bool = False,
    ) -> Glimpse:
        """Attend to the slots; see ``Attention.forward``."""
        context, _, beta, _ = attend(
            self.score.queries(query), memory.slots, rows, self.score.v, trace=trace
        )
        if beta is None:
            return Glimpse(context, state)
        seen = Trace(
            computed=memory.slots.lengths_of(rows),
            weights=summed(beta, memory.phi.transpose(1, 2), rows),
            beta=beta,
            alpha=memory.phi,
        )
        return Glimpse(context, state, trace=seen)

    def encoding_computations(self, lengths: Tensor) -> Tensor:
        """K scores a source position."""
        return self.phi.out_features * lengths
