"""Self-attention over whole sentences with heads, with gradient; see ``attend``.

Legend: B sentences, S positions after padding, M real tokens, D units, h heads.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from nmtflex.ops.dispatch import implementation
from nmtflex.ops.tensors import upload


class Layout(NamedTuple):
    """Where the M real tokens of a batch are; only these are computed outside of attention."""

    lengths: Tensor  # [B], on the CPU
    width: int  # S
    mask: Tensor | None = None  # [B, S], True at real tokens; None: there is no padding
    places: Tensor | None = None  # [M] of real tokens in the flattened mask; None: no padding

    @classmethod
    def of(cls, lengths: Tensor, width: int, device: torch.device) -> Layout:
        """Return the layout of sentences of lengths [B], whose tensors are on a device."""
        inside = torch.arange(width) < lengths.unsqueeze(1)
        if bool(inside.all()):
            return cls.full(len(lengths), width)
        places = inside.flatten().nonzero().squeeze(1)
        return cls(lengths, width, upload(inside, device), upload(places, device))

    @classmethod
    def full(cls, sentences: int, width: int) -> Layout:
        """Return the layout of sentences of equal length."""
        return cls(torch.full((sentences,), width), width)

    def inside(self, device: torch.device) -> Tensor:
        """Return the mask [B, S], also where there is no padding."""
        if self.mask is not None:
            return self.mask
        return torch.ones(len(self.lengths), self.width, dtype=torch.bool, device=device)

    def spread(self, tokens: Tensor) -> Tensor:
        """Lay tokens out with zeros at padding: [M, D] to [B, S, D]."""
        if self.places is not None:
            flat = tokens.new_zeros(len(self.lengths) * self.width, tokens.shape[1])
            tokens = flat.index_copy(0, self.places, tokens)
        return tokens.view(len(self.lengths), self.width, -1)

    def collect(self, laid_out: Tensor) -> Tensor:
        """Undo ``spread``: [B, S, D] to [M, D]."""
        flat = laid_out.flatten(0, 1)
        return flat if self.places is None else flat.index_select(0, self.places)


class Options(NamedTuple):
    """Options of ``attend``."""

    heads: int
    dropout: float
    causal: bool
    reach: int | None


def attend(
    projections: Tensor,
    layout: Layout,
    heads: int,
    dropout: float = 0.0,
    causal: bool = False,
    reach: int | None = None,
) -> Tensor:
    """Attend within each sentence.

    Vaswani et al. (2017), eq. 1, for each head: softmax(Q K^T / sqrt(D / h)) V. With a reach the
    cost is linear in the length: Beltagy et al. (2020), https://arxiv.org/abs/2004.05150,
    section 3.1, "sliding window".

    Args:
        projections: [M, 3 D], queries, keys and values, each head after head. More rows may
            follow; they attend to nothing.
        layout: Of the sentences.
        heads: h.
        dropout: Share of the weights set to 0; the others are divided by 1 - dropout.
        causal: Whether a position attends only to itself and to those before.
        reach: How many positions before it, and after it, one attends to; None: to all.

    Returns:
        [M, D] and a row of zeros for each further one, in float32 at least on a CPU.
    """
    run = implementation("self_attention", projections.device).attend
    with torch.autocast(projections.device.type, enabled=False):
        return run(projections, layout, Options(heads, dropout, causal, reach))
