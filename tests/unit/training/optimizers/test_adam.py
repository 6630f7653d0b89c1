"""Adam is PyTorch's, bit for bit, with either kind of weight decay."""

from __future__ import annotations

import math

import pytest
import torch
from same_as_pytorch import train_both
from torch import nn

from nmtflex.training.optimizers.adam import Adam

VASWANI = {"beta1": 0.9, "beta2": 0.98, "eps": 1e-9}
THEIRS = {"betas": (0.9, 0.98), "eps": 1e-9}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_weights_and_state_are_those_of_pytorch(dtype):
    train_both(Adam, {}, torch.optim.Adam, {}, dtype)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_weight_decay_of_adam_is_added_to_the_gradient(decay):
    own, theirs = {**VASWANI, "weight_decay": decay}, {**THEIRS, "weight_decay": decay}
    train_both(Adam, own, torch.optim.Adam, theirs)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_weight_decay_of_adamw_is_decoupled(decay):
    own, theirs = {**VASWANI, "weight_decay": decay}, {**THEIRS, "weight_decay": decay}
    train_both(Adam, {**own, "decoupled": True}, torch.optim.AdamW, theirs)


def test_decoupled_decay_shrinks_a_matrix_and_leaves_a_vector():
    """A gradient of 1 moves a weight by the rate, whatever it is."""
    matrix, vector = nn.Parameter(torch.full((2, 2), 3.0)), nn.Parameter(torch.full((2,), 3.0))
    matrix.grad, vector.grad = torch.ones(2, 2), torch.ones(2)
    Adam([matrix, vector], 0.1, decoupled=True, weight_decay=0.5).step()
    assert matrix.flatten().tolist() == pytest.approx([3.0 * (1 - 0.05) - 0.1] * 4, rel=1e-6)
    assert vector.tolist() == pytest.approx([2.9, 2.9], rel=1e-6)


def test_the_second_step_by_hand():
    """Algorithm 1 with betas 0.5 and 0.75, gradients 2 and 1, and a large epsilon."""
    weight = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = Adam([weight], 0.1, beta1=0.5, beta2=0.75, eps=1.0)
    place = 0.0
    for mean, square, gradient in ((2.0, 4.0, 2.0), (1 / 0.75, 1 / 0.4375, 1.0)):
        weight.grad = torch.full((1,), gradient, dtype=torch.float64)
        optimizer.step()
        place -= 0.1 * mean / (math.sqrt(square) + 1.0)
        assert weight.item() == pytest.approx(place, rel=1e-12)


def test_no_gradient_moves_nothing():
    weight = nn.Parameter(torch.ones(3))
    Adam([weight]).step()
    assert torch.equal(weight, torch.ones(3))
