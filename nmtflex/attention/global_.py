"""Global attention: every source position, every step."""

from __future__ import annotations

from torch import Tensor

from nmtflex.attention.base import Glimpse, Sizes, State, Trace, register
from nmtflex.attention.source import SourceAttention
from nmtflex.config import GlobalConfig
from nmtflex.ops.attend import Source, attend
from nmtflex.ops.luong import Attending, Score


@register(GlobalConfig)
class GlobalAttention(SourceAttention):
    """Global attention.

    Bahdanau, Cho and Bengio (2015), https://arxiv.org/abs/1409.0473; in the notation of Shu
    and Nakayama, eq. 1-3::

        a(s) = exp(score(h, k_s)) / sum over s' of exp(score(h, k_s'))        (2)
        c    = sum over s of a(s) k_s                                         (1)

    with the score functions of ``nmtflex.attention.scores``. ``h`` is h[t-1] under
    ``--decoder bahdanau`` and h[t] under ``--decoder luong``. The weights of a step sum to 1.

    Args:
        sizes: Widths of query, states and keys.
        config: ``score`` names the score function.
    """

    def __init__(self, sizes: Sizes, config: GlobalConfig) -> None:
        super().__init__(sizes, config.score)

    def attending(self, memory: Source, state: State) -> Attending:
        """Return the source and the score; see ``Attention.attending``."""
        return Attending(memory, Score(*self.score.of_queries()))

    def forward(
        self,
        query: Tensor,
        feedback: Tensor,
        memory: Source,
        rows: Tensor | None,
        state: State,
        trace: bool = False,
    ) -> Glimpse:
        """Attend to all positions; see ``Attention.forward``."""
        context, _, weights, _ = attend(
            self.score.queries(query), memory, rows, self.score.v, trace=trace
        )
        seen = Trace(memory.lengths_of(rows), weights) if trace else None
        return Glimpse(context, state, trace=seen)
