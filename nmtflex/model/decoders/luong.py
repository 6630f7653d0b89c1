"""The decoder of Luong, Pham and Manning: advance the cell, then attend."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nmtflex.attention import Attention, State, Trace
from nmtflex.layers.cells import Stack
from nmtflex.layers.linear import Product
from nmtflex.model.decoders.base import Decoder
from nmtflex.model.encoders.recurrent import Encoded


class LuongDecoder(Decoder):
    """Advance the cell first, attend with the new state, predict from both.

    Luong, Pham and Manning (2015), section 3, eq. 5-6 and 3.3; Britz, Guan and Luong (2017), eq.
    5, state it without the tanh layer and without input feeding, which the switches give::

        h[t] = cell([i[t]; a[t-1]], h[t-1])          a[t-1] is left out without input feeding
        c[t] = attention(h[t], i[t])
        a[t] = tanh(W [h[t]; c[t]])                  without the layer: [h[t]; c[t]], and the
                                                     context alone is fed
        p(y[t]) = softmax(W a[t] + b)

    Args:
        stack: The cells.
        attention: The mechanism.
        encoded_size: Units of the encoder's final state.
        size: D.
        output_size: O.
        attentional: Whether a[t] has a layer of its own.
        fed_size: Units fed into the next step; 0 turns input feeding off.
    """

    def __init__(
        self,
        stack: Stack,
        attention: Attention,
        encoded_size: int,
        size: int,
        output_size: int,
        attentional: bool,
        fed_size: int,
    ) -> None:
        super().__init__(stack, attention, encoded_size, size, output_size)
        self.fed_size = fed_size
        joined = size + attention.context_size
        self.attentional = Product(joined, size, bias=False) if attentional else None

    def start_fed(self, encoded: Encoded) -> State:
        """Return zeros: nothing was predicted yet."""
        return (encoded.final.new_zeros(len(encoded.final), self.fed_size),)

    def forward(
        self,
        gates: Tensor,
        feedback: Tensor,
        memory: Any,
        rows: Tensor | None,
        state: State,
        trace: bool = False,
    ) -> tuple[Tensor, State, Trace | None]:
        """Advance one step; see ``Decoder.forward``."""
        count = self.stack.state_size
        cells, fed, attending = state[:count], state[count], state[count + 1 :]
        cells = self.stack(gates, fed, cells)
        h = cells[self.stack.top]
        context, attending, seen = self.attention(h, feedback, memory, rows, attending, trace)
        output = torch.cat([h, context], dim=1)
        fed = context
        if self.attentional is not None:
            fed = output = torch.tanh(self.attentional(output))
        fed = fed[:, : self.fed_size]  # no units where input feeding is off
        return output, (*cells, fed, *attending), seen
