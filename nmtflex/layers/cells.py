"""Recurrent cells whose input side can be computed for all steps at once.

Legend: N rows (hypotheses, or sentences in training), C units of a cell's input, D units of a cell,
G gate units (4 D in an LSTM, 3 D in a GRU).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from nmtflex.layers.dropout import Dropout
from nmtflex.layers.linear import Linear, Product
from nmtflex.ops.dispatch import as_on_gpu
from nmtflex.ops.recurrent import lstm
from nmtflex.ops.recurrent.sequence import gru_sequence, lstm_sequence
from nmtflex.ops.tensors import precise

State = tuple[Tensor, ...]


class Cell(nn.Module, ABC):
    """A recurrent cell; the input known beforehand arrives as one side of its gates.

    Args:
        input_size: C, units of the input made by each step; may be 0.
        size: D.
    """

    num_parts: ClassVar[int]  # tensors of the state; the first is the output h
    num_gates: ClassVar[int]  # gates a unit

    @abstractmethod
    def forward(self, gates: Tensor, inputs: Tensor, state: State) -> State:
        """Advance by one step.

        Args:
            gates: [N, G] the side of the gates known beforehand, or [G] only a bias.
            inputs: [N, C] made by the step itself.
            state: ``num_parts`` tensors [N, D], the first one h.

        Returns:
            The new state, alike.
        """

    @abstractmethod
    def sequence(self, inputs: Tensor, weight: Tensor | None, bias: Tensor, state: State) -> Tensor:
        """Advance by all steps of a batch at once.

        Args:
            inputs: [B, T, I], all that comes in.
            weight: [G, I] of the inputs; None: the cell's own, of inputs that the step makes.
            bias: [G].
            state: As in ``forward``, before the first step.

        Returns:
            h of every step, [B, T, D].
        """


class LSTMCell(Cell):
    """Long short-term memory with the gates i, f, g, o, as in ``torch.nn.LSTM``."""

    num_parts = 2
    num_gates = 4

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.joint = Product(input_size + size, 4 * size, bias=False)

    def forward(self, gates: Tensor, inputs: Tensor, state: State) -> State:
        """Advance (h, c) with one product for all gates; see ``Cell.forward``."""
        h, c = state
        return lstm(self.joint.bare(torch.cat([inputs, h], dim=1)), gates, c)

    def sequence(self, inputs: Tensor, weight: Tensor | None, bias: Tensor, state: State) -> Tensor:
        """Advance (h, c) by all steps; see ``Cell.sequence``."""
        size = state[0].shape[1]
        own, hidden = self.joint.weight.tensor_split((self.joint.in_features - size,), dim=1)
        weights = (own if weight is None else weight, hidden, bias, torch.zeros_like(bias))
        return lstm_sequence(inputs, state, weights)


class GRUCell(Cell):
    """Gated recurrent unit with the gates r, z, n, as in ``torch.nn.GRU``."""

    num_parts = 1
    num_gates = 3

    def __init__(self, input_size: int, size: int) -> None:
        super().__init__()
        self.inputs = Product(input_size, 3 * size, bias=False) if input_size else None
        self.hidden = Product(size, 3 * size, bias=False)  # r is multiplied with its side of n
        self.candidate_bias = nn.Parameter(torch.zeros(size))

    def forward(self, gates: Tensor, inputs: Tensor, state: State) -> State:
        """Advance (h,); see ``Cell.forward``."""
        (h,) = state
        if as_on_gpu(h.device):
            h = h.to(precise(h.dtype))  # a sum over steps; bfloat16 would lose too much
        if self.inputs is not None:
            gates = gates + self.inputs(inputs)
        r_in, z_in, n_in = gates.chunk(3, dim=1)
        r_h, z_h, n_h = self.hidden(h).chunk(3, dim=1)
        z = torch.sigmoid(z_in + z_h)
        n = torch.tanh(n_in + torch.sigmoid(r_in + r_h) * (n_h + self.candidate_bias))
        return (n + z * (h - n),)

    def sequence(self, inputs: Tensor, weight: Tensor | None, bias: Tensor, state: State) -> Tensor:
        """Advance (h,) by all steps; see ``Cell.sequence``."""
        if weight is None:
            weight = cast("Product", self.inputs).weight
        unused = bias.new_zeros(2 * len(self.candidate_bias))
        hidden_bias = torch.cat([unused, self.candidate_bias])
        return gru_sequence(inputs, state, (weight, self.hidden.weight, bias, hidden_bias))


CELLS: dict[str, type[Cell]] = {"lstm": LSTMCell, "gru": GRUCell}


class Stack(nn.Module):
    """A stack of cells, with dropout on each cell's input.

    Args:
        cell: Name in ``CELLS``.
        embedding_size: E, units of the bottom input known for all steps beforehand.
        extra_size: C, units of the bottom input made by each step (context, fed vector).
        size: D.
        num_layers: Cells.
        dropout: Share of input units dropped in training.
    """

    def __init__(
        self,
        cell: str,
        embedding_size: int,
        extra_size: int,
        size: int,
        num_layers: int,
        dropout: float,
    ) -> None:
        super().__init__()
        input_sizes = [extra_size] + [size] * (num_layers - 1)
        self.cells = nn.ModuleList(CELLS[cell](inputs, size) for inputs in input_sizes)
        gate_units = CELLS[cell].num_gates * size
        self.embedding_gates = Linear(embedding_size, gate_units)
        self.layer_biases = nn.ParameterList(torch.empty(gate_units) for _ in input_sizes[1:])
        self.dropout = Dropout(dropout)
        self.num_parts = CELLS[cell].num_parts
        self.top = (num_layers - 1) * self.num_parts  # place of the top layer's h in the state
        self.state_size = num_layers * self.num_parts
        self._reset(size)

    def _reset(self, size: int) -> None:
        """Draw all weights as ``torch.nn.LSTM`` does: uniform within 1 / sqrt(D)."""
        bound = 1 / math.sqrt(size)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def input_gates(self, embedded: Tensor) -> Tensor:
        """Return the embedding's side of the bottom gates, one step or all: [.., E] to [.., G]."""
        return self.embedding_gates(self.dropout(embedded))

    def forward(self, gates: Tensor, extra: Tensor, state: State) -> State:
        """Advance all layers.

        Args:
            gates: [N, G] from ``input_gates``.
            extra: [N, C], C may be 0.
            state: Every layer's parts, from the bottom.

        Returns:
            The new state, alike; ``state[self.top]`` is the top layer's h.
        """
        new: State = ()
        for layer, cell in enumerate(self.cells):
            if layer:
                gates, extra = self.layer_biases[layer - 1], new[-self.num_parts]
            first = layer * self.num_parts
            new += cell(gates, self.dropout(extra), state[first : first + self.num_parts])
        return new

    def sequence(self, embedded: Tensor, state: State) -> Tensor:
        """Advance all layers by all steps, if a step makes no input of its own (C = 0).

        Args:
            embedded: [B, T, E].
            state: Before the first step, as in ``forward``.

        Returns:
            The top layer's h of every step, [B, T, D].
        """
        found, biases = embedded, [self.embedding_gates.bias, *self.layer_biases]
        for layer, (cell, bias) in enumerate(zip(self.cells, biases, strict=True)):
            weight = None if layer else self.embedding_gates.weight
            first = layer * self.num_parts
            own = state[first : first + self.num_parts]
            found = cast("Cell", cell).sequence(self.dropout(found), weight, bias, own)
        return found
