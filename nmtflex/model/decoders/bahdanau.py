"""The decoder of Bahdanau, Cho and Bengio: attend first, then advance the cell."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from nmtflex.attention import Attention, Reuse, State
from nmtflex.attention.marking import unmarked
from nmtflex.layers.cells import Stack
from nmtflex.layers.linear import Linear, Product
from nmtflex.model.decoders.base import Step, Words
from nmtflex.model.decoders.recurrent import RecurrentDecoder


class DeepOutput(nn.Module):
    """Predict from the new state, the previous word and the context.

    Bahdanau, Cho and Bengio (2015), eq. 4 and appendix A.2.2, each t[t] the larger one of a pair::

        u[t] = U h[t] + V i[t] + C c[t] + b          2 D units
        t[t] = max of u[t, 2j] and u[t, 2j + 1]      D units, j = 0 .. D - 1

    Departure: the appendix has the old state h[t-1] here; eq. 4 has the new one, and so have we.

    Args:
        embedding_size: E, units of i[t].
        context_size: C, units of c[t].
        size: D.
    """

    def __init__(self, embedding_size: int, context_size: int, size: int) -> None:
        super().__init__()
        self.words = Linear(embedding_size, 2 * size)  # known for all steps beforehand
        self.joint = Product(size + context_size, 2 * size, bias=False)

    def forward(self, words: Tensor, h: Tensor, context: Tensor) -> Tensor:
        """Return t[t] [N, D] from ``words(i[t])`` [N, 2 D], h[t] [N, D] and c[t] [N, C]."""
        joined = words + self.joint(torch.cat([h, context], dim=1))
        return joined.unflatten(1, (-1, 2)).amax(2)


class BahdanauDecoder(RecurrentDecoder):
    """Attend with the old state, feed the context into the cell, predict from the new state.

    Shu and Nakayama, section 4.1, after Bahdanau, Cho and Bengio (2015)::

        c[t] = attention(h[t-1], i[t])
        h[t] = cell([i[t]; c[t]], h[t-1])
        p(y[t]) = softmax(W h[t] + b)

    Bahdanau et al. predict from t[t] of ``DeepOutput`` instead of h[t], which sees the previous
    word and the context, too.

    Args:
        stack: The cells.
        attention: The mechanism.
        summary_size: Units of the encoder's summary.
        size: D, also the units of the output vector.
        deep: The deep output, or None to predict from h[t] alone.
    """

    def __init__(
        self,
        stack: Stack,
        attention: Attention | Reuse,
        summary_size: int,
        size: int,
        deep: DeepOutput | None,
    ) -> None:
        super().__init__(stack, attention, summary_size, size, size)
        self.deep = deep

    def words(self, embedded: Tensor) -> Words:
        """Return the words' side of the gates and of the deep output."""
        words = super().words(embedded)
        if self.deep is None:
            return words
        both = torch.cat([words.gates, self.deep.words(embedded)], dim=-1)
        return words._replace(gates=both)

    def step(
        self, memory: Any, rows: Tensor | None, state: State, words: Words, trace: bool = False
    ) -> Step:
        """Advance one step; see ``Decoder.step``."""
        cells, attending = state[: self.stack.state_size], state[self.stack.state_size :]
        query = cells[self.stack.top]
        seen = self.attention(query, words.feedback, memory, rows, attending, trace)
        context, weights = unmarked(seen.context, self.attention.context_size)
        gates, deep = words.gates, None
        if self.deep is not None:
            gates, deep = gates.tensor_split((-self.deep.words.out_features,), dim=1)
        cells = self.stack(gates, context, cells)
        output = cells[self.stack.top]
        if self.deep is not None:
            output = self.deep(deep, output, context)
        return Step(output, cells + seen.state, seen.gate, seen.trace, weights)
