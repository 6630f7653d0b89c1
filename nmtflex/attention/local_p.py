"""Local attention around a predicted position: local-p."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmtflex.attention.base import Glimpse, Sizes, State, Trace, register
from nmtflex.attention.source import SourceAttention, exactly
from nmtflex.config import LocalPConfig
from nmtflex.ops.attend import Damping, Source, Window, attend


@register(LocalPConfig)
class LocalPAttention(SourceAttention):
    """Local attention with a predicted centre ("local-p").

    Luong, Pham and Manning (2015), https://aclanthology.org/D15-1166, section 3.2, eq. 9-10; Shu
    and Nakayama, eq. 10-11::

        p    = S sigmoid(v . tanh(W h))                       centre, source positions from 0
        a(s) = align(h, k_s) exp(-(s - p)^2 / (2 sigma^2))    for |s - p| <= D, else 0

    ``align`` is the softmax of the score over the window only, and sigma = D / 2. Only the scores
    of the window are computed, in training as in decoding. The damped weights are not normalised
    again: those of a step sum to at most 1. The gradient reaches p through the Gaussian.

    Departure: eq. 11 of Shu and Nakayama has the softmax over all positions, which would need every
    score; Luong's program, and their own count of computations, use the window.

    Args:
        sizes: Widths of query, states and keys; W has ``keys`` units.
        config: ``window`` is D, in source tokens to either side; ``score`` names the function.
    """

    def __init__(self, sizes: Sizes, config: LocalPConfig) -> None:
        super().__init__(sizes, config.score)
        self.centre = nn.Sequential(
            nn.Linear(sizes.query, sizes.keys, bias=False),
            nn.Tanh(),
            nn.Linear(sizes.keys, 1, bias=False),
        )
        self.reach = config.window

    def weight_sums(self, length: int) -> tuple[float, float]:
        """Damped weights sum to at most 1."""
        return 0.0, 1.0

    def forward(
        self,
        query: Tensor,
        feedback: Tensor,
        memory: Source,
        rows: Tensor | None,
        state: State,
        trace: bool = False,
    ) -> Glimpse:
        """Attend within D of the predicted centre; see ``Attention.forward``."""
        lengths = memory.lengths_of(rows)
        centre = lengths * torch.sigmoid(exactly(self.centre(query)).squeeze(1))  # [N]
        # At least one position lies within D >= 1 of a centre between 0 and S; a NaN of broken
        # weights shows in the context and does not crash.
        start = torch.minimum((centre - self.reach).ceil().long().clamp(min=0), lengths - 1)
        stop = (centre + self.reach).floor().long() + 1
        stop = torch.maximum(torch.minimum(stop, lengths), start + 1)
        context, _, weights, _ = attend(
            self.score.queries(query),
            memory,
            rows,
            self.score.v,
            Window(start, stop),
            damping=Damping(centre, self.reach / 2),
            trace=trace,
        )
        seen = Trace(stop - start, weights, None, centre, start, stop) if trace else None
        return Glimpse(context, state, trace=seen)
