"""The loops of a long short-term memory and of a gate against plain PyTorch."""

from __future__ import annotations

import pytest
import torch

from nmtflex.ops.recurrent import gate, lstm


def problem(rows, size, dtype):
    torch.manual_seed(rows)
    return [3 * torch.randn(rows, width, dtype=dtype) for width in (4 * size, 4 * size, size)]


def by_kernels(monkeypatch, kernels, tensors):
    monkeypatch.setenv("NMTFLEX_KERNELS", kernels)
    return lstm(*tensors)


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-6), (torch.float64, 1e-14)])
@pytest.mark.parametrize(("rows", "size"), [(1, 1), (3, 16), (200, 33)])
def test_a_step_equals_the_reference(monkeypatch, rows, size, dtype, atol):
    tensors = problem(rows, size, dtype)
    with torch.no_grad():
        found = by_kernels(monkeypatch, "auto", tensors)
    expected = by_kernels(monkeypatch, "reference", tensors)
    for made, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(made, wanted, rtol=0, atol=atol)


def test_a_bias_stands_for_all_rows(monkeypatch):
    product, summand, c = problem(5, 4, torch.float64)
    found = by_kernels(monkeypatch, "auto", [product, summand[0], c])
    expected = by_kernels(monkeypatch, "reference", [product, summand[:1].expand(5, -1), c])
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("seen", [(0,), (1,), (0, 1)])  # which of h and c the loss reads
def test_gradients_equal_the_slopes(seen):
    tensors = [tensor.requires_grad_() for tensor in problem(3, 4, torch.float64)]

    def read(*parts):
        return tuple(lstm(*parts)[which] for which in seen)

    assert torch.autograd.gradcheck(read, tensors)


def test_two_steps_in_a_row_have_the_gradients_of_the_reference(monkeypatch):
    def grads(kernels):
        product, summand, c = (t.requires_grad_() for t in problem(6, 5, torch.float64))
        h, new = by_kernels(monkeypatch, kernels, [product, summand, c])
        h, new = by_kernels(monkeypatch, kernels, [h.repeat(1, 4), summand, new])
        return torch.autograd.grad((h * new).sum(), (product, summand, c))

    torch.testing.assert_close(grads("auto"), grads("reference"))


def test_bfloat16_gates_are_computed_in_float32(monkeypatch):
    tensors = [tensor.bfloat16() for tensor in problem(4, 8, torch.float32)]
    with torch.no_grad():
        found = by_kernels(monkeypatch, "auto", tensors)
    expected = by_kernels(monkeypatch, "reference", [tensor.float() for tensor in tensors])
    assert {part.dtype for part in found} == {torch.float32}
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("word", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-6), (torch.float64, 1e-14)])
def test_a_gate_equals_the_reference(monkeypatch, word, bias, dtype, atol):
    torch.manual_seed(4)
    state, other = torch.randn(2, 70, 33, dtype=dtype)
    v, b = torch.randn(33, dtype=dtype), torch.randn(1, dtype=dtype)
    parts = (state, other if word else None, v, b if bias else None)
    expected = torch.sigmoid(torch.tanh(state + word * other) @ v + bias * b)
    for kernels in ("auto", "reference"):
        monkeypatch.setenv("NMTFLEX_KERNELS", kernels)
        with torch.no_grad():
            torch.testing.assert_close(gate(*parts), expected, rtol=0, atol=atol)
    torch.testing.assert_close(gate(*parts), expected, rtol=0, atol=atol)  # with gradients


def test_the_gradients_of_a_gate_equal_the_slopes():
    torch.manual_seed(5)
    state, word = torch.randn(2, 3, 4, dtype=torch.float64).unbind(0)
    parts = [state, word, torch.randn(4).double(), torch.randn(1).double()]
    assert torch.autograd.gradcheck(gate, [part.requires_grad_() for part in parts])
