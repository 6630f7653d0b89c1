"""Sublayers in 8-bit integers, against the trained ones with every operand of a product rounded."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from nmtflex.layers.feed_forward import FeedForward
from nmtflex.layers.residual import Residual
from nmtflex.layers.ssru import Ssru
from nmtflex.layers.sublayers import Sublayers
from nmtflex.ops.linear.packed import Int8
from nmtflex.ops.linear.stages import NOTHING_SEEN, NOWHERE, Past

SIZE, HIDDEN = 48, 80


def rounded(tensor):
    """Round rows to 255 steps between the greatest magnitude and its negative, in float64."""
    scale = tensor.double().abs().amax(1, keepdim=True) / 127
    return (tensor.double() / scale).round() * scale


def around(pre_norm):
    residual = Residual(SIZE, pre_norm, 0.0).eval()
    torch.nn.init.normal_(residual.norm.weight, 1.0, 0.2)
    torch.nn.init.normal_(residual.norm.bias, 0.0, 0.2)
    return residual


def in_8_bits(layer, *products):
    for product in products:
        product.fast = Int8(product.weight)
    return layer


def feed(residual, layer):
    """Return what computes a feed-forward sublayer: [.., D] to [.., D]."""
    sublayers = Sublayers(SIZE)
    sublayers.feed(residual, layer)

    def run(x):
        rows = x.flatten(0, -2).numpy()
        nothing = np.empty((len(rows), 0, SIZE), np.float32)
        done = sublayers.program.run(rows, Past(nothing, nothing), NOWHERE, NOTHING_SEEN)
        return torch.from_numpy(done.x).view(x.shape)

    return run


def mix(residual, layer):
    """Return what computes a step of an SSRU sublayer: [N, D] and the state [N, D]."""
    sublayers = Sublayers(SIZE)
    sublayers.mix(residual, layer)

    def run(x, state):
        after = np.empty((len(x), 1, SIZE), np.float32)
        past = Past(state.unsqueeze(1).numpy(), after)
        done = sublayers.program.run(x.numpy(), past, NOWHERE, NOTHING_SEEN)
        return torch.from_numpy(done.x), torch.from_numpy(after[:, 0])

    return run


def product(x, layer):
    made = rounded(x) @ rounded(layer.weight.detach()).t()
    return made if layer.bias is None else made + layer.bias.double()


def near(found, expected):
    """Almost all numbers are equal; one that lies half way may be rounded to the other side."""
    away = (found.double() - expected).abs()
    assert away.mean() < 1e-3 * expected.abs().mean()
    assert away.max() < 0.05 * expected.abs().max()


@pytest.mark.parametrize("pre_norm", [False, True])
@torch.no_grad()
def test_a_feed_forward_sublayer(pre_norm):
    torch.manual_seed(5)
    residual, layer = around(pre_norm), FeedForward(SIZE, HIDDEN, 0.0).eval()
    torch.nn.init.normal_(layer.inner.bias)
    torch.nn.init.normal_(layer.outer.bias)
    fast = feed(residual, in_8_bits(layer, layer.inner, layer.outer))
    x = torch.randn(3, 7, SIZE)
    found = fast(x)
    assert found.shape == x.shape
    exact, flat = copy.deepcopy(residual).double(), x.flatten(0, 1).double()
    hidden = torch.relu(product(exact.enter(flat), layer.inner))
    expected = exact.leave(flat, product(hidden, layer.outer)).view(x.shape)
    near(found, expected)
    rows = torch.cat([fast(row.unsqueeze(0)) for row in x.flatten(0, 1)])
    assert torch.equal(rows, found.flatten(0, 1))  # whatever stands beside a row


@pytest.mark.parametrize("pre_norm", [False, True])
@torch.no_grad()
def test_an_ssru_sublayer(pre_norm):
    torch.manual_seed(6)
    residual, layer = around(pre_norm), Ssru(SIZE).eval()
    torch.nn.init.normal_(layer.bias)
    fast = mix(residual, in_8_bits(layer, layer.joint))
    x, state = torch.randn(5, SIZE), torch.randn(5, SIZE)
    found, after = fast(x, state)
    exact = copy.deepcopy(residual).double()
    gates, candidates = product(exact.enter(x.double()), layer.joint).chunk(2, dim=1)
    forget = torch.sigmoid(gates + layer.bias.double())
    expected = forget * state.double() + (1 - forget) * candidates
    near(after, expected)
    near(found, exact.leave(x.double(), torch.relu(expected)))
    for n in range(5):
        row, own = fast(x[n : n + 1], state[n : n + 1])
        assert torch.equal(row[0], found[n])
        assert torch.equal(own[0], after[n])


@torch.no_grad()
def test_nan_stays_in_its_row():
    torch.manual_seed(7)
    x = torch.randn(3, SIZE)
    x[1, 2] = torch.nan
    layer = FeedForward(SIZE, HIDDEN, 0.0)
    found = feed(around(True), in_8_bits(layer, layer.inner, layer.outer))(x)
    assert found.isnan().all(1).tolist() == [False, True, False]
    mixer = Ssru(SIZE)
    fast = mix(around(True), in_8_bits(mixer, mixer.joint))
    found, _ = fast(x, torch.zeros(3, SIZE))
    assert found.isnan().all(1).tolist() == [False, True, False]
    assert not found[[0, 2]].isnan().any()
