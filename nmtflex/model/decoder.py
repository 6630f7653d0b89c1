"""The decoders: one step from a state and the previous word to the vector that predicts the next.

Legend: N hypotheses (or sentences in training), E embedding units, D decoder units, C context
units, G gate units and whatever else a word brings into a step, O output units.

The state is a flat tuple of tensors [N, ...]: the cells' parts from the bottom layer up, then what
the decoder feeds itself, then the attention mechanism's own. The search reorders it blindly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from nmtflex.attention import Attention, State, Trace
from nmtflex.kernels.products import Linear, Product
from nmtflex.model.cells import Stack
from nmtflex.model.encoder import Encoded


class Decoder(nn.Module, ABC):
    """What the two decoders share: cells, attention, and a start from the encoder's final state.

    Args:
        stack: The cells.
        attention: The mechanism.
        encoded_size: Units of the encoder's final state.
        size: D.
        output_size: O, units of the vector that predicts a word.
    """

    def __init__(
        self, stack: Stack, attention: Attention, encoded_size: int, size: int, output_size: int
    ) -> None:
        super().__init__()
        self.stack = stack
        self.attention = attention
        self.output_size = output_size
        self.word_size = stack.embedding_gates.out_features  # G
        self.bridge = Linear(encoded_size, stack.state_size * size)

    def start(self, encoded: Encoded) -> State:
        """Return the state before the first step, a row a sentence: each part tanh(W final)."""
        parts = torch.tanh(self.bridge(encoded.final)).chunk(self.stack.state_size, dim=1)
        return (*parts, *self.start_fed(encoded), *self.attention.start(encoded.states))

    def start_fed(self, encoded: Encoded) -> State:
        """Return what the decoder feeds itself before the first step: nothing, unless it does."""
        return ()

    def input_gates(self, embedded: Tensor) -> Tensor:
        """Return the words' side of the gates, for one step or all: [.., E] to [.., G]."""
        return self.stack.input_gates(embedded)

    @abstractmethod
    def forward(
        self,
        gates: Tensor,
        feedback: Tensor,
        memory: Any,
        rows: Tensor | None,
        state: State,
        trace: bool = False,
    ) -> tuple[Tensor, State, Trace | None]:
        """Advance one step.

        Args:
            gates: [N, G] from ``input_gates`` of the previous word.
            feedback: [N, E] embedding of the previous word, for the attention mechanism.
            memory: What the attention mechanism prepared.
            rows: [N] sentence of each hypothesis, or None for one each.
            state: The state of the step before.
            trace: Whether to return the attention's trace.

        Returns:
            The output vector [N, O], the new state, and the trace or None.
        """


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


class BahdanauDecoder(Decoder):
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
        encoded_size: Units of the encoder's final state.
        size: D, also the units of the output vector.
        deep: The deep output, or None to predict from h[t] alone.
    """

    def __init__(
        self,
        stack: Stack,
        attention: Attention,
        encoded_size: int,
        size: int,
        deep: DeepOutput | None,
    ) -> None:
        super().__init__(stack, attention, encoded_size, size, size)
        self.deep = deep
        if deep is not None:
            self.word_size += deep.words.out_features

    def input_gates(self, embedded: Tensor) -> Tensor:
        """Return the words' side of the gates and of the deep output; see ``Decoder``."""
        gates = super().input_gates(embedded)
        if self.deep is None:
            return gates
        return torch.cat([gates, self.deep.words(embedded)], dim=-1)

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
        cells, attending = state[: self.stack.state_size], state[self.stack.state_size :]
        context, attending, seen = self.attention(
            cells[self.stack.top], feedback, memory, rows, attending, trace
        )
        if self.deep is None:
            cells = self.stack(gates, context, cells)
            return cells[self.stack.top], cells + attending, seen
        gates, words = gates.tensor_split((-self.deep.words.out_features,), dim=1)
        cells = self.stack(gates, context, cells)
        output = self.deep(words, cells[self.stack.top], context)
        return output, cells + attending, seen


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
