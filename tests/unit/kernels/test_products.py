"""Products that are frozen for decoding, against those that are trained."""

from __future__ import annotations

import pytest
import torch

from nmtflex.kernels.products import Int8, Packed, Product

SHAPES = [(1, 3, 5), (5, 256, 4906), (64, 33, 7), (300, 128, 1024)]


@pytest.mark.parametrize(("rows", "units", "outputs"), SHAPES)
def test_a_packed_product_is_the_same(rows, units, outputs):
    torch.manual_seed(rows)
    x, weight = torch.randn(rows, units), torch.randn(outputs, units)
    if not Packed.serves(weight):
        pytest.skip("this build of PyTorch has no packed products")
    torch.testing.assert_close(Packed(weight)(x), x @ weight.t(), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("rows", "units", "outputs"), SHAPES)
def test_8_bits_round_each_row_by_its_own_scale(rows, units, outputs):
    torch.manual_seed(rows)
    x, weight = torch.randn(rows, units), torch.randn(outputs, units)

    def rounded(tensor):
        scale = tensor.double().abs().amax(1, keepdim=True) / 127
        return (tensor.double() / scale).round() * scale

    found, expected = Int8(weight)(x).double(), rounded(x) @ rounded(weight).t()
    # A number half way between two may go either way: one step of the scales, for few of them.
    step = x.abs().amax() * weight.abs().amax() / 127
    assert (found - expected).abs().max() < 2 * step
    assert (found - expected).abs().mean() < 1e-3 * expected.abs().mean()


def test_8_bits_of_a_row_do_not_depend_on_those_beside_it():
    torch.manual_seed(1)
    x, product = torch.randn(40, 64), Int8(torch.randn(100, 64))
    x[7] *= 1000
    together = product(x)
    for n in range(40):
        assert torch.equal(product(x[n : n + 1])[0], together[n])


def test_8_bits_of_nothing_are_nothing_and_nan_stays():
    x = torch.zeros(3, 16)
    x[1, 3] = torch.nan
    found = Int8(torch.ones(4, 16))(x)
    assert found[0].tolist() == found[2].tolist() == [0, 0, 0, 0]
    assert found[1].isnan().all()


def test_a_frozen_product_takes_the_place_of_the_trained_one():
    torch.manual_seed(2)
    product, x = Product(6, 4), torch.randn(3, 6)
    bare, whole = product.bare(x), product(x)
    torch.testing.assert_close(whole, bare + product.bias)
    product.frozen = lambda x: 2 * (x @ product.weight.t())
    torch.testing.assert_close(product.bare(x), 2 * bare)
    torch.testing.assert_close(product(x), 2 * bare + product.bias)
