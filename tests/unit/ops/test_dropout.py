"""Dropout: how many numbers it drops, which ones, and what it lets through backwards."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nmtflex.layers.dropout import Dropout
from nmtflex.ops.dropout.cpu import _dropped

BITS = 2**32


def mixed(x):
    """Do one round of Wellons's lowbias32 in whole numbers of any size."""
    x = (x ^ (x >> 16)) * 0x7FEB352D % BITS
    x = (x ^ (x >> 15)) * 0x846CA68B % BITS
    return x ^ (x >> 16)


def drawn(place, seed):
    return mixed(mixed((place * 0x9E3779B9 + seed) % BITS) ^ (seed >> 32))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("seed", [0, 7, 2**32 + 5, 2**63 - 1])
def test_what_is_dropped_follows_from_seed_and_place(dtype, seed):
    torch.manual_seed(1)
    x, p = torch.randn(9, 23, dtype=dtype), 0.3
    kept = torch.tensor([drawn(place, seed) >= int(p * BITS) for place in range(x.numel())])
    scale = torch.tensor(1 / (1 - p), dtype=torch.promote_types(dtype, torch.float32))
    expected = (x * kept.view(x.shape) * scale).to(dtype)
    torch.testing.assert_close(_dropped(x, p, seed), expected)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_each_number_is_dropped_with_probability_p(p):
    torch.manual_seed(2)
    dropout = Dropout(p)
    kept = torch.stack([dropout(torch.ones(100, 100)) != 0 for _ in range(20)]).double()
    deviation = (p * (1 - p)) ** 0.5
    assert abs(kept.mean() - (1 - p)) < 5 * deviation / kept.numel() ** 0.5
    # Neither neighbours nor the same place at two times know of each other.
    rest = (kept - (1 - p)) / deviation
    for one, other in (
        (rest[:, :, 1:], rest[:, :, :-1]),
        (rest[:, 1:], rest[:, :-1]),
        (rest[1:], rest[:-1]),
    ):
        assert abs((one * other).mean()) < 5 / one.numel() ** 0.5


def test_the_gradient_passes_where_the_number_did():
    torch.manual_seed(3)
    x = torch.randn(40, 30, dtype=torch.float64).t().requires_grad_()  # not in one piece
    y = Dropout(0.4)(x)
    arriving = torch.randn(30, 40, dtype=torch.float64)
    (found,) = torch.autograd.grad(y, x, arriving)
    torch.testing.assert_close(found, arriving * (y != 0) / 0.6)
    torch.testing.assert_close(y, x * (y != 0) / 0.6)


def test_the_same_state_of_the_generator_drops_the_same_at_any_number_of_threads():
    x, dropout, threads = torch.ones(600, 500), Dropout(0.2), torch.get_num_threads()
    found = []
    for count in (1, 2):
        torch.set_num_threads(count)
        torch.manual_seed(4)
        found.append((dropout(x), dropout(x)))
    torch.set_num_threads(threads)
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
    assert not torch.equal(*found[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_broken_stays_in_sight(dtype):
    assert Dropout(0.5)(torch.full((50,), torch.nan, dtype=dtype)).isnan().all()


def test_bfloat16_is_rounded_as_pytorch_rounds():
    every = torch.arange(2**16, dtype=torch.int32).to(torch.uint16).view(torch.bfloat16)
    left = _dropped(every, 0.3, 11)
    kept = torch.tensor([drawn(place, 11) >= int(0.3 * BITS) for place in range(2**16)])
    expected = (every.float() * torch.where(kept, torch.tensor(1 / 0.7), 0.0)).bfloat16()
    torch.testing.assert_close(left, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("p", [0.0, 1.0, 0.3])
def test_where_it_is_pytorchs_own(p, monkeypatch):
    if p == 0.3:
        monkeypatch.setenv("NMTFLEX_KERNELS", "reference")
    x, ours, theirs = torch.randn(50, 4), Dropout(p), nn.Dropout(p)
    torch.manual_seed(5)
    expected = theirs(x), theirs.eval()(x)
    torch.manual_seed(5)
    assert torch.equal(ours(x), expected[0])
    assert torch.equal(ours.eval()(x), expected[1])


def test_in_bfloat16_and_of_nothing():
    found = Dropout(0.5)(torch.ones(200, dtype=torch.bfloat16))
    assert found.dtype == torch.bfloat16
    assert found.unique().tolist() == [0, 2]
    assert Dropout(0.5)(torch.ones(3, 0)).shape == (3, 0)
