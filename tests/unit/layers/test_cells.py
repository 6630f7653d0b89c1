"""Cells and stacks against torch's own."""

from __future__ import annotations

import itertools

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
                if inputs.numel():
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


PLAIN = pytest.mark.parametrize(("cell", "rnn"), [("lstm", nn.LSTM), ("gru", nn.GRU)])


@PLAIN
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_sequence_equals_torch_and_the_steps(cell, rnn, layers):
    torch.manual_seed(2)
    stack = Stack(cell, 3, 0, 5, layers, dropout=0.3).double().eval()
    expected = rnn(3, 5, layers, batch_first=True).double()
    fill_from(stack, expected, embedding=3)
    embedded = torch.randn(2, 6, 3).double().requires_grad_()
    state = tuple(torch.randn(2, 5).double() for _ in range(stack.state_size))
    start = [torch.stack(state[part :: stack.num_parts]) for part in range(stack.num_parts)]
    wanted, _ = expected(embedded, tuple(start) if len(start) == 2 else start[0])
    found = stack.sequence(embedded, state)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
    gates, tops = stack.input_gates(embedded), []
    for step in range(6):
        state = stack(gates[:, step], embedded.new_empty(2, 0), state)
        tops.append(state[stack.top])
    weights = [embedded, *stack.parameters()]
    factors = torch.randn(found.shape).double()
    gradients = [
        torch.autograd.grad((part * factors).sum(), weights, allow_unused=True)
        for part in (found, torch.stack(tops, dim=1))
    ]
    for one, other in zip(*gradients, strict=True):
        if one is not None and other is not None:
            torch.testing.assert_close(one, other, rtol=0, atol=1e-12)
        else:  # weights of an input of no units
            assert [part for part in (one, other) if part is not None and part.any()] == []


@PLAIN
def test_dropout_is_on_each_layer_s_input_of_a_sequence(cell, rnn):
    torch.manual_seed(4)
    stack = Stack(cell, 32, 0, 32, 2, dropout=0.3).double().train()
    entered, left = [], []
    for layer in stack.cells:

        def watched(inputs, *others, sequence=layer.sequence):
            entered.append(inputs)
            left.append(sequence(inputs, *others))
            return left[-1]

        layer.sequence = watched
    embedded = torch.randn(20, 8, 32).double()
    top = stack.sequence(
        embedded, tuple(torch.zeros(20, 32).double() for _ in range(stack.state_size))
    )
    assert torch.equal(top, left[1])  # nothing is dropped of what leaves
    for before, after in zip((embedded, left[0]), entered, strict=True):
        kept = after != 0
        assert abs(kept.double().mean().item() - 0.7) < 4 * (0.21 / kept.numel()) ** 0.5
        torch.testing.assert_close(after, before * kept / 0.7, rtol=1e-12, atol=0)
    masks = [(after != 0) for after in entered]
    assert abs((masks[0] == masks[1]).double().mean().item() - (0.49 + 0.09)) < 0.05
    steps = masks[0].unbind(1)
    assert not any(torch.equal(one, other) for one, other in itertools.pairwise(steps))
