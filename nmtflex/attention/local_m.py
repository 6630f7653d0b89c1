"""Local attention around the diagonal: local-m."""

from __future__ import annotations

import torch
from torch import Tensor

from nmtflex.attention.base import Glimpse, Sizes, State, Trace, register
from nmtflex.attention.source import SourceAttention
from nmtflex.config import LocalMConfig
from nmtflex.ops.attend import Source, Window, attend


@register(LocalMConfig)
class LocalMAttention(SourceAttention):
    """Local attention with a monotonic centre ("local-m").

    Luong, Pham and Manning (2015), https://aclanthology.org/D15-1166, section 3.2::

        p[t] = t                                          centre, source positions from 0
        a(s) = softmax of score(h, k_s) over the window   |s - p[t]| <= D, else 0

    Only the scores of the window are computed, in training as in decoding, and there is no
    Gaussian. The weights of a step sum to 1.

    Departure: the centre stops at the last source word, p[t] = min(t, S - 1), since a target can
    be longer than its source, and a window beyond the end would be empty.

    The state is the step t [N].

    Args:
        sizes: Widths of query, states and keys.
        config: ``window`` is D, in source tokens to either side; ``score`` names the function.
    """

    def __init__(self, sizes: Sizes, config: LocalMConfig) -> None:
        super().__init__(sizes, config.score)
        self.reach = config.window

    def start(self, states: Tensor) -> State:
        """Return the step 0 of each sentence."""
        return (torch.zeros(len(states), dtype=torch.long, device=states.device),)

    def forward(
        self,
        query: Tensor,
        feedback: Tensor,
        memory: Source,
        rows: Tensor | None,
        state: State,
        trace: bool = False,
    ) -> Glimpse:
        """Attend within D of the step's number; see ``Attention.forward``."""
        (step,) = state
        lengths = memory.lengths_of(rows)
        centre = torch.minimum(step, lengths - 1)
        start = (centre - self.reach).clamp(min=0)
        stop = torch.minimum(centre + self.reach + 1, lengths)
        window = Window(start, stop)
        context, _, weights, _ = attend(
            self.score.queries(query), memory, rows, self.score.v, window, trace=trace
        )
        state = (step + 1,)
        seen = Trace(stop - start, weights, None, centre, start, stop) if trace else None
        return Glimpse(context, state, trace=seen)

    def sequence(
        self, queries: Tensor, feedback: Tensor, memory: Source, state: State
    ) -> tuple[Tensor, Tensor | None]:
        """Attend in all steps, whose numbers are known; see ``Attention.sequence``."""
        (first,) = state
        steps = first.unsqueeze(1) + torch.arange(queries.shape[1], device=first.device)
        return self.at_once(queries, feedback, memory, (steps.flatten(),))
