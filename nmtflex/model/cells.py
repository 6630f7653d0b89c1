"""Recurrent cells whose input side can be computed for all steps at once.

Legend: N rows (hypotheses, or sentences in training), D units of a cell, G gate units (4 D in an
LSTM, 3 D in a GRU).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

State = tuple[Tensor, ...]


class Cell(nn.Module, ABC):
    """A recurrent cell in two halves: input gates from outside, the rest from the state.

    Args:
        size: D.
    """

    num_parts: ClassVar[int]  # tensors of the state; the first is the output h
    num_gates: ClassVar[int]  # gates a unit

    def __init__(self, size: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(size, self.num_gates * size, bias=False)

    @abstractmethod
    def forward(self, gates: Tensor, state: State) -> State:
        """Advance by one step.

        Args:
            gates: [N, G] the input's side of the gates, bias included.
            state: ``num_parts`` tensors [N, D], the first one h.

        Returns:
            The new state, alike.
        """


class LSTMCell(Cell):
    """Long short-term memory with the gates i, f, g, o, as in ``torch.nn.LSTM``."""

    num_parts = 2
    num_gates = 4

    def forward(self, gates: Tensor, state: State) -> State:
        """Advance (h, c); see ``Cell.forward``."""
        h, c = state
        i, f, g, o = (gates + self.hidden(h)).chunk(4, dim=1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class GRUCell(Cell):
    """Gated recurrent unit with the gates r, z, n, as in ``torch.nn.GRU``."""

    num_parts = 1
    num_gates = 3

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.candidate_bias = nn.Parameter(torch.zeros(size))

    def forward(self, gates: Tensor, state: State) -> State:
        """Advance (h,); see ``Cell.forward``."""
        (h,) = state
        r_in, z_in, n_in = gates.chunk(3, dim=1)
        r_h, z_h, n_h = self.hidden(h).chunk(3, dim=1)
        z = torch.sigmoid(z_in + z_h)
        n = torch.tanh(n_in + torch.sigmoid(r_in + r_h) * (n_h + self.candidate_bias))
        return (n + z * (h - n),)


CELLS: dict[str, type[Cell]] = {"lstm": LSTMCell, "gru": GRUCell}


class Stack(nn.Module):
    """Cells one above the other; dropout on each cell's input.

    Args:
        cell: Name in ``CELLS``.
        embedding_size: E, units of the bottom input that is known for all steps beforehand.
        extra_size: C, units of the bottom input that each step makes (context, fed vector).
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
        self.cells = nn.ModuleList(CELLS[cell](size) for _ in range(num_layers))
        gate_units = CELLS[cell].num_gates * size
        self.embedding_gates = nn.Linear(embedding_size, gate_units)
        self.extra_gates = nn.Linear(extra_size, gate_units, bias=False) if extra_size else None
        self.layer_gates = nn.ModuleList(nn.Linear(size, gate_units) for _ in range(num_layers - 1))
        self.dropout = nn.Dropout(dropout)
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
        if self.extra_gates is not None:
            gates = gates + self.extra_gates(self.dropout(extra))
        new: State = ()
        for layer, cell in enumerate(self.cells):
            if layer:
                gates = self.layer_gates[layer - 1](self.dropout(new[-self.num_parts]))
            first = layer * self.num_parts
            new += cell(gates, state[first : first + self.num_parts])
        return new
