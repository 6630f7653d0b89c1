"""The window that a threshold leaves: the loop, PyTorch, and one position after the other."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nmtflex.ops.attend import Penalty, window_below

FOCUS = st.one_of(st.floats(-2, 45, width=32), st.integers(-4, 90).map(lambda twice: twice / 2))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kernels", ["auto", "reference"])
def test_it_holds_the_positions_with_a_penalty_below(kernels, dtype, monkeypatch):
    monkeypatch.setenv("NMTFLEX_KERNELS", kernels)

    @settings(max_examples=200)
    @given(
        tau=st.sampled_from([0.0, 0.05, 0.35, 1.38, 1e9, 1e39, math.inf]),
        gate=st.one_of(st.just(0.0), st.just(1.0), st.floats(0, 1, width=32)),
        focus=FOCUS,
        length=st.integers(1, 41),
        sigma=st.sampled_from([0.3, 0.7, 1.5, 5.0]),
    )
    @example(tau=0.35, gate=1.0, focus=7.5, length=1, sigma=0.3)
    def check(tau, gate, focus, length, sigma):
        penalty = Penalty(
            torch.tensor([gate], dtype=dtype), torch.tensor([focus], dtype=dtype), sigma
        )
        start, stop = window_below(tau, penalty, torch.tensor([length]))
        positions = torch.arange(length)
        below = (penalty.at(positions[None])[0] < tau).nonzero().squeeze(1).tolist()
        if not below:  # the nearest one, the first of two
            below = [min(range(length), key=lambda s: abs(s - focus))]
        assert list(range(int(start), int(stop))) == below

    check()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kernels", ["auto", "reference"])
def test_at_the_edge_the_penalty_decides_and_not_the_radius(kernels, dtype, monkeypatch):
    """The threshold is a position's own penalty, or the next number above: a radius rounds."""
    monkeypatch.setenv("NMTFLEX_KERNELS", kernels)
    draw = torch.Generator().manual_seed(8)
    for _ in range(60):
        gate, focus, sigma = torch.rand(3, generator=draw, dtype=torch.float64).tolist()
        penalty = Penalty(
            torch.tensor([gate], dtype=dtype), torch.tensor([20 * focus], dtype=dtype), 5 * sigma
        )
        values = penalty.at(torch.arange(20)[None])[0]
        for own in values:
            for tau in (own, torch.nextafter(own, torch.tensor(torch.inf, dtype=dtype))):
                below = (values < tau).nonzero().squeeze(1).tolist()
                if below:
                    start, stop = window_below(tau.item(), penalty, torch.tensor([20]))
                    assert list(range(int(start), int(stop))) == below


@pytest.mark.parametrize("kernels", ["auto", "reference"])
def test_a_nan_leaves_a_window_inside_the_source(kernels, monkeypatch):
    monkeypatch.setenv("NMTFLEX_KERNELS", kernels)
    gate, focus = torch.tensor([math.nan, 0.5, math.nan]), torch.tensor([3.0, math.nan, math.nan])
    start, stop = window_below(0.5, Penalty(gate, focus, 1.5), torch.tensor([9, 4, 1]))
    assert (start >= 0).all()
    assert (start < stop).all()
    assert (stop <= torch.tensor([9, 4, 1])).all()
