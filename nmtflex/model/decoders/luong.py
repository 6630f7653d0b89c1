"""The decoder of Luong, Pham and Manning: advance the cell, then attend."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nmtflex.attention import Attention, Reuse, State
from nmtflex.attention.marking import unmarked
from nmtflex.layers.cells import LSTMCell, Stack
from nmtflex.layers.linear import Product
from nmtflex.model.decoders.base import Step, Steps, Words
from nmtflex.model.decoders.recurrent import RecurrentDecoder
from nmtflex.model.encoders.base import Encoded
from nmtflex.ops.luong import Weights, pays, steps


class LuongDecoder(RecurrentDecoder):
    """Advance the cell first, attend with the new state, predict from both.

    Luong, Pham and Manning (2015), section 3, eq. 5-6 and 3.3; Britz, Guan and Luong (2017), eq.
    5, leave out the tanh layer and input feeding, which are options here::

        h[t] = cell([i[t]; a[t-1]], h[t-1])          without input feeding: no a[t-1]
        c[t] = attention(h[t], i[t])
        a[t] = tanh(W [h[t]; c[t]])                  without the layer: [h[t]; c[t]], and the
                                                     context alone is fed
        p(y[t]) = softmax(W a[t] + b)

    Args:
        stack: The cells.
        attention: The mechanism.
        summary_size: Units of the encoder's summary.
        size: D.
        output_size: O.
        attentional: Whether a[t] has a layer of its own.
        fed_size: Units fed into the next step; 0 turns input feeding off.
    """

    def __init__(
        self,
        stack: Stack,
        attention: Attention | Reuse,
        summary_size: int,
        size: int,
        output_size: int,
        attentional: bool,
        fed_size: int,
    ) -> None:
        super().__init__(stack, attention, summary_size, size, output_size)
        self.fed_size = fed_size
        joined = size + attention.context_size
        self.attentional = Product(joined, size, bias=False) if attentional else None

    def start_fed(self, encoded: Encoded) -> State:
        """Return zeros: nothing has been predicted yet."""
        return (encoded.summary.new_zeros(len(encoded.summary), self.fed_size),)

    def step(
        self, memory: Any, rows: Tensor | None, state: State, words: Words, trace: bool = False
    ) -> Step:
        """Advance one step; see ``Decoder.step``."""
        count = self.stack.state_size
        cells, fed, attending = state[:count], state[count], state[count + 1 :]
        cells = self.stack(words.gates, fed, cells)
        h = cells[self.stack.top]
        seen = self.attention(h, words.feedback, memory, rows, attending, trace)
        context, weights = unmarked(seen.context, self.attention.context_size)
        output = self._output(h, context)
        fed = context if self.attentional is None else output
        fed = fed[:, : self.fed_size]  # no units where input feeding is off
        return Step(output, (*cells, fed, *seen.state), seen.gate, seen.trace, weights)

    def sequence(self, memory: Any, state: State, embedded: Tensor) -> Steps:
        """Run over given words, without input feeding in all steps at once; see ``Decoder``."""
        if self.fed_size:
            fused = self._fused_steps(memory, state, embedded)
            return super().sequence(memory, state, embedded) if fused is None else fused
        count = self.stack.state_size
        h = self.stack.sequence(embedded, state[:count])
        feedback = self.attention.feedback(embedded)
        contexts, gates = self.attention.sequence(h, feedback, memory, state[count + 1 :])
        contexts, weights = unmarked(contexts, self.attention.context_size)
        return Steps(self._output(h, contexts), gates, weights)

    def _output(self, h: Tensor, context: Tensor) -> Tensor:
        """Return the vectors [.., O] that predict words, of h [.., D] and contexts [.., C]."""
        output = torch.cat([h, context], dim=-1)
        return output if self.attentional is None else torch.tanh(self.attentional(output))

    def _fused_steps(self, memory: Any, state: State, embedded: Tensor) -> Steps | None:
        """Run all steps in one operation, if there is one for this decoder and these tensors."""
        cell, *others = self.stack.cells
        if self.attentional is None or others or not isinstance(cell, LSTMCell):
            return None
        h, c, _, *own = state
        attending = self.attention.attending(memory, tuple(own))
        if attending is None or not pays(attending.source, embedded):
            return None
        if attending.source.values.shape[2] > self.attention.context_size:  # weights are read
            return None
        words = self.words(embedded.transpose(0, 1).contiguous())
        weights = Weights(cell.joint.weight, self.attentional.weight)
        dropout = self.stack.dropout.p if self.training else 0.0
        outputs, gates = steps(*words, (h, c), weights, attending, dropout)
        return Steps(outputs.transpose(0, 1), None if gates is None else gates.transpose(0, 1))
