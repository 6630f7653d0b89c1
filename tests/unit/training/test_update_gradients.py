"""A gradient in pieces equals the whole one; what memory does not hold is halved or left out."""

from __future__ import annotations

import copy
import math
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
import torch
from letters import LENGTHS
from no_memory import ERRORS

from nmtflex.launch import Launch
from nmtflex.ranks import Ranks
from nmtflex.training import gradients
from nmtflex.training.gradients import Gradients, clip_gradient
from nmtflex.training.tensors import loss_of as true_loss_of


def made(model, batches, chosen):
    """Return the gradient, its sums and who made it."""
    maker = Gradients(model, batches, 0.1, 0.0)
    sums = maker.of(chosen)
    found = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    return found, sums, maker


def fail_above(monkeypatch, most: int, error: Exception, backward: bool = False):
    """Let batches of more than so many pairs find no memory, going forward or back."""
    tried, true_loss = [], gradients.loss_of

    def loss_of(model, batch, *options):
        tried.append(len(batch.lengths))
        loss = true_loss(model, batch, *options)
        if tried[-1] <= most:
            return loss
        if not backward:
            raise error
        weight = next(model.parameters())
        return loss._replace(objective=Refusing.apply(loss.objective, weight, error))

    monkeypatch.setattr(gradients, "loss_of", loss_of)
    return tried


class Refusing(torch.autograd.Function):
    """Fails going back, when other weights have their gradients perhaps."""

    @staticmethod
    def forward(context, objective, weight, error):
        context.error = error
        return objective + 0 * weight.sum()

    @staticmethod
    def backward(context, *_):
        raise context.error


@pytest.mark.sampled(2)
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("backward", [False, True])
def test_a_gradient_in_pieces_is_the_whole_one(model, batches, monkeypatch, error, backward):
    chosen = [np.arange(5), np.arange(5, 8)]
    whole, expected, _ = made(model, batches, chosen)
    tried = fail_above(monkeypatch, 2, error, backward)
    found, sums, maker = made(model, batches, chosen)
    assert tried[-5:] == [2, 1, 2, 2, 1]
    assert sums.splits == 3
    assert maker.left_out == []
    assert (sums.tokens, sums.sentences) == (expected.tokens, 8) == (sum(LENGTHS) + 8, 8)
    assert math.isclose(sums.objective, expected.objective, rel_tol=1e-12)
    assert math.isclose(sums.cross_entropy, expected.cross_entropy, rel_tol=1e-12)
    for name, gradient in whole.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("largest", [27, 26, 9, 1])
def test_pieces_too_large_for_memory_are_not_tried(model, batches, monkeypatch, largest):
    chosen = [np.arange(5), np.arange(5, 8)]
    whole, expected, _ = made(model, batches, chosen)
    tried = []

    def loss_of(model, batch, *options):
        tried.append(len(batch.lengths) * max(batch.source.shape[1], batch.target_in.shape[1]))
        return true_loss_of(model, batch, *options)

    monkeypatch.setattr(gradients, "loss_of", loss_of)
    maker = Gradients(model, batches, 0.1, 0.0, largest=largest)
    sums = maker.of(chosen)
    widths = [length + 1 for length in LENGTHS]
    assert all(size <= largest or size in widths for size in tried)
    assert (sums.splits, sums.left_out, sums.tokens) == (0, 0, expected.tokens)
    assert len(tried) == {27: 3, 26: 4, 9: 8, 1: 8}[largest]
    for name, weight in model.named_parameters():
        torch.testing.assert_close(weight.grad, whole[name], rtol=1e-10, atol=1e-14)


def refuse(monkeypatch, batches, pair: int) -> None:
    """Let there be no memory for batches with a pair."""
    true_collate = batches.collate

    def collate(pairs):
        if pair in pairs:
            raise MemoryError
        return true_collate(pairs)

    monkeypatch.setattr(batches, "collate", collate)


def test_a_pair_too_large_alone_is_left_out(model, batches, monkeypatch):
    without, expected, _ = made(model, batches, [np.array([0, 1, 2, 4, 5, 6, 7])])
    refuse(monkeypatch, batches, 3)
    found, sums, maker = made(model, batches, [np.arange(8)])
    assert maker.left_out == [3]
    assert sums.left_out == 1
    assert sums.tokens == expected.tokens == sum(LENGTHS) + 8 - (LENGTHS[3] + 1)
    for name, gradient in without.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-10, atol=1e-14)


class Pair(Ranks):
    """One of two processes, here of two threads, that tell each other what they have."""

    def __init__(self, rank: int, told: list[object], both: Barrier) -> None:
        super().__init__(Launch(rank, 2))
        self.told, self.both = told, both

    def _exchanged(self, value):
        self.both.wait()
        self.told[self.rank] = value
        self.both.wait()
        return list(self.told)

    def _reduced(self, tensor, _=None):
        return sum(self._exchanged(tensor.clone()))

    def gather(self, value):
        values = self._exchanged(value)
        return values if self.first else []


def test_two_processes_leave_out_as_one(model, batches, monkeypatch):
    without, expected, _ = made(model, batches, [np.array([0, 1, 2, 4, 5, 6, 7])])
    refuse(monkeypatch, batches, 3)
    told, both, models = [None, None], Barrier(2, timeout=60), [model, copy.deepcopy(model)]
    makers = [
        Gradients(models[rank], batches, 0.1, 0.0, Pair(rank, told, both)) for rank in range(2)
    ]
    with ThreadPoolExecutor(2) as pool:
        sums = list(pool.map(lambda maker: maker.of([np.arange(8)]), makers))
    assert makers[0].left_out == [3]
    assert sums[0] == sums[1]
    assert (sums[0].tokens, sums[0].sentences) == (expected.tokens, 7)
    assert (sums[0].splits, sums[0].left_out) == (2, 1)
    assert math.isclose(sums[0].objective, expected.objective, rel_tol=1e-12)
    for trained in models:
        for name, weight in trained.named_parameters():
            torch.testing.assert_close(weight.grad, without[name], rtol=1e-10, atol=1e-14)


def test_nothing_fits(model, batches, monkeypatch):
    fail_above(monkeypatch, 0, MemoryError())
    maker = Gradients(model, batches, 0.0, 0.0)
    sums = maker.of([np.arange(8)])
    assert (sums.tokens, sums.sentences, sorted(maker.left_out)) == (0, 0, list(range(8)))
    assert all(weight.grad is None for weight in model.parameters())


def test_another_error_is_none_of_memory(model, batches, monkeypatch):
    fail_above(monkeypatch, 0, RuntimeError("shapes differ"))
    with pytest.raises(RuntimeError, match="shapes differ"):
        made(model, batches, [np.arange(8)])


@pytest.mark.parametrize(
    ("limit", "scale"), [(0, 1), (13.1, 1), (13.0, 1), (6.5, 0.5), (1e-3, 1 / 13e3)]
)
def test_a_gradient_is_clipped_to_its_limit(limit, scale):
    layer = torch.nn.Linear(2, 1)
    layer.weight.grad, layer.bias.grad = torch.tensor([[3.0, -4.0]]), torch.tensor([12.0])
    assert clip_gradient(layer, limit) == 13  # the root of 9 + 16 + 144
    torch.testing.assert_close(layer.weight.grad, scale * torch.tensor([[3.0, -4.0]]))
    torch.testing.assert_close(layer.bias.grad, scale * torch.tensor([12.0]))
    if limit in {0, 13.1}:
        assert layer.bias.grad.item() == 12


def test_clipping_equals_pytorchs_bit_for_bit():
    torch.manual_seed(6)
    for limit in (0.5, 3.0, 100.0):
        ours, theirs = (torch.nn.LSTM(5, 7) for _ in range(2))
        for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        norm = torch.nn.utils.clip_grad_norm_(theirs.parameters(), limit)
        assert clip_gradient(ours, limit) == norm
        for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert torch.equal(one.grad, other.grad)


def test_the_norm_of_what_is_broken_and_of_nothing():
    layer = torch.nn.Linear(2, 1)
    assert clip_gradient(layer, 3.0) == 0
    layer.bias.grad = torch.tensor([torch.nan])
    assert math.isnan(clip_gradient(layer, 3.0))
