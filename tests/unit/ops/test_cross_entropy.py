"""Cross-entropy in chunks, against torch's own over all logits at once."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from nmtflex.ops.vocabulary import cross_entropy as module
from nmtflex.ops.vocabulary.cross_entropy import cross_entropy


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Let seven tokens be three chunks, the last one shorter."""
    monkeypatch.setattr(module, "CHUNK", 1)
    monkeypatch.setattr(module, "LEAST_ROWS", 3)


def inputs(dtype=torch.float64, tokens=7, units=5, words=11):
    torch.manual_seed(1)
    hidden, weight = torch.randn(tokens, units), torch.randn(words, units)
    tensors = [part.to(dtype).requires_grad_() for part in (hidden, weight, torch.randn(words))]
    return (*tensors, torch.randint(words, (tokens,)))


def whole(hidden, weight, bias, references, smoothing):
    logits = functional.linear(hidden, weight, bias)
    sums = [
        functional.cross_entropy(logits, references, reduction="sum", label_smoothing=e)
        for e in (smoothing, 0.0)
    ]
    return sums[0], sums[1]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("tokens", [1, 3, 7])
def test_sums_and_gradients_are_those_of_all_logits_at_once(smoothing, tokens):
    found, expected = inputs(tokens=tokens), inputs(tokens=tokens)
    objective, plain = cross_entropy(*found, smoothing)
    wanted, wanted_plain = whole(*expected, smoothing)
    torch.testing.assert_close(objective, wanted, rtol=1e-12, atol=0)
    torch.testing.assert_close(plain, wanted_plain, rtol=1e-12, atol=0)
    assert not plain.requires_grad
    (objective / 3).backward()
    (wanted / 3).backward()
    for one, other in zip(found[:3], expected[:3], strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-10, atol=1e-12)


def test_gradcheck():
    *tensors, references = inputs()
    assert torch.autograd.gradcheck(
        lambda *parts: cross_entropy(*parts, references, 0.1)[0], tensors
    )


def test_a_graph_used_twice_gives_the_same_twice():
    hidden, *rest = inputs()
    objective, _ = cross_entropy(hidden, *rest)
    [first] = torch.autograd.grad(objective, hidden, retain_graph=True)
    [second] = torch.autograd.grad(objective, hidden)
    assert torch.equal(first, second)


def test_large_logits_do_not_overflow():
    hidden, weight, bias, references = inputs(torch.float32)
    objective, _ = cross_entropy(1e4 * hidden, weight, bias, references)
    assert objective.isfinite()
    objective.backward()
    assert all(part.grad.isfinite().all() for part in (weight, bias))


def test_under_autocast_products_are_bfloat16_and_sums_float32():
    hidden, weight, bias, references = inputs(torch.float32, tokens=50, units=32)
    with torch.autocast("cpu", torch.bfloat16):
        objective, plain = cross_entropy(hidden, weight, bias, references, 0.1)
    assert objective.dtype == plain.dtype == torch.float32
    rounded = [part.detach().bfloat16().float() for part in (hidden, weight)]
    wanted, _ = whole(*rounded, bias.detach(), references, 0.1)
    torch.testing.assert_close(objective.detach(), wanted, rtol=2e-2, atol=0)
    assert objective.item() != whole(hidden, weight, bias, references, 0.1)[0].item()
    objective.backward()
    assert hidden.grad.dtype == weight.grad.dtype == torch.float32


def test_without_gradients_none_are_made(monkeypatch):
    *tensors, references = inputs()
    monkeypatch.setattr(torch.Tensor, "scatter_add_", None)  # of the gradients alone
    objective, plain = cross_entropy(*(part.detach() for part in tensors), references)
    assert not objective.requires_grad
    assert objective == plain


def test_logits_are_never_whole():
    hidden, weight, bias, _ = inputs(tokens=7)
    batch = module._Batch(hidden, weight, bias)
    assert [(rows.start, rows.stop) for rows in batch.chunks()] == [(0, 3), (3, 6), (6, 9)]
