"""Products that are made ready for decoding, against those that are trained."""

from __future__ import annotations

import pytest
import torch

from nmtflex.layers.linear import Product, one_gradient
from nmtflex.ops.linear.packed import Int8, Packed
from nmtflex.ops.linear.products import times

SHAPES = [(1, 3, 5), (5, 256, 4906), (64, 33, 7), (300, 128, 1024)]


@pytest.mark.parametrize(("rows", "units", "outputs"), SHAPES)
def test_a_packed_product_is_the_same(rows, units, outputs):
    torch.manual_seed(rows)
    x, weight = torch.randn(rows, units), torch.randn(outputs, units)
    bias = torch.randn(outputs)
    near = {"rtol": 1e-5, "atol": 1e-4}
    torch.testing.assert_close(Packed(weight)(x), x @ weight.t(), **near)
    torch.testing.assert_close(Packed(weight)(x, bias), x @ weight.t() + bias, **near)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize(("rows", "units", "outputs"), [*SHAPES, (0, 4, 3), (4, 0, 3), (4, 3, 0)])
def test_a_product_with_a_weight_that_changes(rows, units, outputs, dtype):
    torch.manual_seed(rows)
    x, weight = torch.randn(rows, units).to(dtype), torch.randn(outputs, units).to(dtype)
    expected = x.double() @ weight.double().t()
    limit = {torch.float32: 1e-4, torch.float64: 1e-11, torch.bfloat16: 0.3}[dtype]
    for kind in (weight, weight.t().contiguous().t()):
        for rows_of_x in (x, x.t().contiguous().t()):
            found = times(rows_of_x, kind)
            assert found.dtype == dtype
            torch.testing.assert_close(found.double(), expected, rtol=limit, atol=limit)
    repeated = torch.randn(1, units).to(dtype).expand(rows, units)  # such gradients come of sums
    torch.testing.assert_close(times(repeated, weight), times(repeated.clone(), weight))


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


def test_8_bits_are_of_the_weight_and_not_of_the_bias():
    torch.manual_seed(8)
    x, product, bias = torch.randn(4, 64), Int8(torch.randn(7, 64)), torch.randn(7)
    torch.testing.assert_close(product(x, bias), product(x) + bias)


def test_8_bits_of_nothing_are_nothing_and_nan_stays():
    x = torch.zeros(3, 16)
    x[1, 3] = torch.nan
    found = Int8(torch.ones(4, 16))(x)
    assert found[0].tolist() == found[2].tolist() == [0, 0, 0, 0]
    assert found[1].isnan().all()


def test_a_fast_product_takes_the_place_of_the_trained_one():
    torch.manual_seed(2)
    product, x = Product(6, 4), torch.randn(3, 6)
    bare, whole = product.bare(x), product(x)
    torch.testing.assert_close(whole, bare + product.bias)
    product.fast = lambda x, bias: 2 * (x @ product.weight.t()) + (0 if bias is None else bias)
    torch.testing.assert_close(product.bare(x), 2 * bare)
    torch.testing.assert_close(product(x), 2 * bare + product.bias)


def steps(product, x):
    """Multiply again and again by the same weight, with and without the bias."""
    for _ in range(4):
        x = torch.tanh(product(x)) + product.bare(x)
    return x


@pytest.mark.parametrize(
    ("dtype", "autocast"), [(torch.float64, False), (torch.float32, False), (torch.float32, True)]
)
def test_one_gradient_is_the_sum_over_all_steps(dtype, autocast):
    torch.manual_seed(3)
    product, x = Product(5, 5).to(dtype), torch.randn(7, 5).to(dtype).requires_grad_()
    weights = [x, product.weight, product.bias]
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        expected = torch.autograd.grad(steps(product, x).sum(), weights)
        with one_gradient(product):
            made = steps(product, x)
    assert product.shared is None
    found = torch.autograd.grad(made.sum(), weights, retain_graph=True)
    again = torch.autograd.grad(made.sum(), weights)
    near = 0.05 if autocast else 1e-12 if dtype == torch.float64 else 1e-5
    limit = {"rtol": near, "atol": near}
    for one, two, wanted in zip(found, again, expected, strict=True):
        assert one.dtype == wanted.dtype
        assert torch.equal(one, two)
        torch.testing.assert_close(one, wanted, **limit)


def test_other_gradients_leave_nothing_behind():
    torch.manual_seed(4)
    product, x = Product(3, 3).double(), torch.randn(2, 3).double().requires_grad_()
    expected = torch.autograd.grad(steps(product, x).sum(), product.weight)
    with one_gradient(product):
        made = steps(product, x)
    torch.autograd.grad(made.sum(), x, retain_graph=True)  # never comes to the weight
    torch.testing.assert_close(torch.autograd.grad(made.sum(), product.weight), expected)


def test_a_weight_that_is_not_trained_has_no_gradient():
    product, x = Product(3, 3), torch.randn(2, 3).requires_grad_()
    product.weight.requires_grad_(False)
    expected = torch.autograd.grad(steps(product, x).sum(), x)
    with one_gradient(product):
        made = steps(product, x)
    made.sum().backward()
    torch.testing.assert_close(x.grad, expected[0])
    assert product.weight.grad is None


def test_without_gradients_nothing_is_shared():
    product = Product(3, 3)
    with torch.no_grad(), one_gradient(product):
        assert product.shared is None
