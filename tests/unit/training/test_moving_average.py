"""The moving average of the weights, against a loop of its own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nmtflex.training.moving_average import MovingAverage


@pytest.mark.parametrize("decay", [0.1, 0.5, 0.999])
def test_it_is_that_of_a_loop(decay):
    """The decay of update n is at most (1 + n) / (10 + n): 2/11, 3/12, 4/13 and so on."""
    draw = torch.Generator().manual_seed(1)
    weight = nn.Parameter(torch.randn(3, 2, dtype=torch.float64, generator=draw))
    average = MovingAverage([weight], decay)
    expected = weight.detach().clone()
    for update, warm in enumerate((2 / 11, 3 / 12, 4 / 13, 5 / 14), 1):
        with torch.no_grad():
            weight.copy_(torch.randn(3, 2, dtype=torch.float64, generator=draw))
        average.follow(update)
        keep = min(decay, warm)
        expected = keep * expected + (1 - keep) * weight.detach()
        torch.testing.assert_close(average.values[weight], expected, rtol=1e-12, atol=0)
    assert not average.values[weight].requires_grad


def test_long_after_the_start_the_decay_is_what_was_asked_for():
    weight = nn.Parameter(torch.ones(1, dtype=torch.float64))
    average = MovingAverage([weight], 0.9)
    average.values[weight].zero_()
    average.follow(100_000)
    assert average.values[weight].item() == pytest.approx(0.1)


def test_weights_and_average_change_places_and_come_back_bit_for_bit():
    weight = nn.Parameter(torch.randn(5))
    average = MovingAverage([weight], 0.9)
    with torch.no_grad():
        weight.mul_(3)
    average.follow(1)
    before = weight.detach().clone(), average.values[weight].clone()
    place = weight.data_ptr()
    with average.in_place():
        assert torch.equal(weight, before[1])
        assert torch.equal(average.values[weight], before[0])
    with pytest.raises(KeyError), average.in_place():
        raise KeyError
    assert torch.equal(weight, before[0])
    assert torch.equal(average.values[weight], before[1])
    assert weight.data_ptr() == place


def test_without_a_decay_nothing_is_kept():
    weight = nn.Parameter(torch.ones(2))
    average = MovingAverage([weight], 0.0)
    average.follow(1)
    with average.in_place():
        assert weight.tolist() == [1, 1]
    assert average.values == {}
