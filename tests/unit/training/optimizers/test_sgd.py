"""Stochastic gradient descent is PyTorch's, bit for bit."""

from __future__ import annotations

import pytest
import torch
from same_as_pytorch import train_both
from torch import nn

from nmtflex.training.optimizers.sgd import SGD


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}, {"momentum": 0.9, "weight_decay": 0.1}])
def test_weights_and_state_are_those_of_pytorch(options, dtype):
    train_both(SGD, options, torch.optim.SGD, options, dtype)


def test_steps_by_hand():
    """With momentum 0.5, gradients 2 and 1 move by 2 and by 1 + 0.5 x 2 times the rate."""
    matrix = nn.Parameter(torch.full((1, 1), 10.0, dtype=torch.float64))
    late = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = SGD([matrix, late], 0.1, momentum=0.5, weight_decay=0.01)
    matrix.grad = torch.full((1, 1), 2.0, dtype=torch.float64)
    optimizer.step()
    first = 10 - 0.1 * (2 + 0.01 * 10)
    assert matrix.item() == pytest.approx(first, rel=1e-12)
    matrix.grad = torch.full((1, 1), 1.0, dtype=torch.float64)
    late.grad = torch.full((1,), 4.0, dtype=torch.float64)
    optimizer.step()
    second = first - 0.1 * (1 + 0.01 * first + 0.5 * (2 + 0.01 * 10))
    assert matrix.item() == pytest.approx(second, rel=1e-12)
    assert late.item() == pytest.approx(-0.4, rel=1e-12)


def test_without_momentum_it_keeps_nothing():
    weight = nn.Parameter(torch.ones(3))
    weight.grad = torch.ones(3)
    optimizer = SGD([weight], 0.25)
    optimizer.step()
    assert weight.tolist() == [0.75] * 3
    assert optimizer.state == {}
    assert optimizer.first_state(weight) == {}
