"""How many tokens a batch may have, by what memory holds."""

from __future__ import annotations

import pytest
import torch
from letters import LENGTHS

from nmtflex.errors import OptionError
from nmtflex.ranks import Ranks
from nmtflex.training import budget, memory


def test_a_model_that_memory_does_not_hold_is_refused(monkeypatch):
    with torch.device("meta"):
        layers = torch.nn.Sequential(
            torch.nn.Linear(20_000, 50_000), torch.nn.Linear(50_000, 10_000, bias=False)
        )
    layers[0].bias.requires_grad_(False)
    # Four numbers of 4 bytes for each weight that is trained; one for the bias.
    needed = 4 * (4 * (1_000_000_000 + 500_000_000) + 50_000)
    monkeypatch.setattr(memory, "available_memory", lambda: 2 * needed)
    budget.check_states(layers, torch.device("cpu"), 2, 2)
    monkeypatch.setattr(memory, "available_memory", lambda: needed - 1)
    with pytest.raises(OptionError):
        budget.check_states(layers, torch.device("cpu"), 2)
    monkeypatch.setattr(memory, "available_memory", lambda: 7_100_000_000)
    with pytest.raises(OptionError) as raised:
        budget.check_states(layers, torch.device("cpu"), 2)
    for words in ("1,500,050,000 weights", "24.0 GB", "7.1 GB", "(50000 x 20000)"):
        assert words in str(raised.value)


@pytest.mark.parametrize(("copies", "numbers"), [(0, 2), (1, 3), (3, 5)])
def test_what_the_optimiser_and_the_average_keep_counts(monkeypatch, copies, numbers):
    with torch.device("meta"):
        layer = torch.nn.Linear(10, 100, bias=False)
    monkeypatch.setattr(memory, "available_memory", lambda: 4 * 1000 * numbers)
    budget.check_states(layer, torch.device("cpu"), copies)
    with pytest.raises(OptionError):
        budget.check_states(layer, torch.device("cpu"), copies + 1)


def test_only_batches_beyond_the_usual_are_measured(model, batches, monkeypatch):
    state, usual = torch.get_rng_state(), 1 << 13
    each = 2 * budget.bytes_per_token(model, batches)
    states = 4 * 8 * sum(weight.numel() for weight in model.parameters())
    monkeypatch.setattr(budget, "available_memory", lambda: states + round(10_000.5 * each))
    assert budget.largest_piece(model, batches, 10_000, Ranks(), 2) is None
    assert budget.largest_piece(model, batches, 10_001, Ranks(), 2) == 10_000
    monkeypatch.setattr(budget, "available_memory", lambda: 0)
    assert budget.largest_piece(model, batches, usual, Ranks(), 2) is None
    assert budget.largest_piece(model, batches, usual + 1, Ranks(), 2) == budget.LEAST
    assert all(weight.grad is None for weight in model.parameters())
    assert torch.equal(torch.get_rng_state(), state)


def test_the_budget_by_trial_is_the_last_that_fits(model, batches, monkeypatch):
    widest = max(LENGTHS) + 1
    tried = fail_above_budget(monkeypatch, 2000 // widest)
    assert budget.by_trial(model, batches, 100_000, 2) == 1024
    assert tried == [512 // widest, 1024 // widest, 2048 // widest]
    assert budget.by_trial(model, batches, 512, 2) == 512
    assert all(weight.grad is None for weight in model.parameters())


def fail_above_budget(monkeypatch, most: int) -> list[int]:
    tried, true_loss = [], budget.loss_of

    def loss_of(model, batch):
        tried.append(len(batch.lengths))
        if tried[-1] > most:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return true_loss(model, batch)

    monkeypatch.setattr(budget, "loss_of", loss_of)
    return tried


def test_the_budget_by_measure_grows_with_memory(model, batches):
    found = [
        budget.by_measure(model, batches, 1 << 20, 1 << bits, 2) for bits in (10, 23, 24, 25, 40)
    ]
    assert found[0] == budget.LEAST
    assert found == sorted(found)
    assert found[-1] == 1 << 20
    assert found[1] < found[2] < found[3] < found[4]
    assert all(weight.grad is None for weight in model.parameters())


def test_the_longest_pairs(batches):
    assert budget.longest(batches, 20).tolist() == [7, 3]
    assert budget.longest(batches, 1).tolist() == [7]
    assert len(budget.longest(batches, 900)) == 100  # again and again
