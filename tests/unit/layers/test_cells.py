"""Cells and stacks against torch's own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nmtflex.layers.cells import Stack


def fill_from(stack: Stack, torch_rnn: nn.RNNBase, embedding: int) -> None:
    """Copy torch's weights: the bottom layer's input is [embedding; extra]."""
    with torch.no_grad():
        for layer, cell in enumerate(stack.cells):
            w_in, w_hidden = (getattr(torch_rnn, f"weight_{k}_l{layer}") for k in ("ih", "hh"))
            b_in, b_hidden = (getattr(torch_rnn, f"bias_{k}_l{layer}") for k in ("ih", "hh"))
            inputs = w_in if layer else w_in[:, embedding:]
            bias = b_in + b_hidden
            if isinstance(torch_rnn, nn.GRU):  # the candidate's hidden bias stands inside r * (..)
                size = torch_rnn.hidden_size
                cell.candidate_bias.copy_(b_hidden[2 * size :])
                bias = b_in + torch.cat([b_hidden[: 2 * size], torch.zeros(size)])
                cell.inputs.weight.copy_(inputs)
                cell.hidden.weight.copy_(w_hidden)
            else:
                cell.joint.weight.copy_(torch.cat([inputs, w_hidden], dim=1))
            if layer:
                stack.layer_biases[layer - 1].copy_(bias)
            else:
                stack.embedding_gates.weight.copy_(w_in[:, :embedding])
                stack.embedding_gates.bias.copy_(bias)


@pytest.mark.parametrize(("cell", "rnn"), [("lstm", nn.LSTM), ("gru", nn.GRU)])
@pytest.mark.parametrize("layers", [1, 2])
def test_equals_torch(cell, rnn, layers):
    torch.manual_seed(2)
    stack = Stack(cell, 3, 4, 5, layers, dropout=0.3).eval()
    expected = rnn(7, 5, layers, batch_first=True)
    fill_from(stack, expected, embedding=3)
    embedded, extra = torch.randn(2, 6, 3), torch.randn(2, 6, 4)
    outputs, _ = expected(torch.cat([embedded, extra], dim=2))
    state = tuple(torch.zeros(2, 5) for _ in range(stack.state_size))
    gates = stack.input_gates(embedded)
    for step in range(6):
        state = stack(gates[:, step], extra[:, step], state)
        torch.testing.assert_close(state[stack.top], outputs[:, step])
