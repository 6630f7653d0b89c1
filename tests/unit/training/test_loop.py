"""The training loop, against sums and steps that are computed apart from it."""

from __future__ import annotations

import copy
import csv
import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from letters import PAIRS, begin, finish, make_corpus, small_model
from safetensors.torch import load_file

from nmtflex.training.gradients import Gradients
from nmtflex.training.tensors import inputs_of, loss_of
from nmtflex.training.validation import Validation

STILL = 1e-30  # a rate that changes no weight


def rows(trainer, split):
    with trainer.folder.metrics.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["split"] == split]


def column(trainer, split, name):
    return [float(row[name]) for row in rows(trainer, split)]


def likelihood(trainer, model, batches):
    """Return the summed -log p of batches of pairs, and their target tokens."""
    collate, losses = trainer.gradients.batches.collate, []
    for pairs in batches:
        losses += [loss_of(model, inputs_of(collate(np.array([n])), model.device)) for n in pairs]
    return sum(loss.objective for loss in losses), sum(loss.tokens for loss in losses)


class Scripted:
    """Scores in the place of a validator's."""

    def __init__(self, *scores):
        self.scores = iter(scores)

    def __call__(self, model, check, show):
        bleu, perplexity = next(self.scores)
        return Validation(math.log(2), perplexity, bleu, "s", None, None, ())


@pytest.mark.parametrize("clip", [0.0, 0.05])
def test_an_update_is_a_step_of_adam_along_the_mean_gradient_a_token(data, tmp_path, clip):
    trainer = begin(data, tmp_path / "run", updates=1, accumulate=2, clip=clip, lr=0.01)
    model = copy.deepcopy(trainer.model)
    total, tokens = likelihood(trainer, model, trainer.order[:2])
    (total / tokens).backward()
    norm = math.sqrt(sum(weight.grad.square().sum().item() for weight in model.parameters()))
    scale = min(1.0, clip / norm) if clip else 1.0
    finish(trainer)
    assert column(trainer, "train", "gradient_norm") == [pytest.approx(norm, rel=1e-9)]
    for name, weight in model.named_parameters():
        # Adam's first step: both means are the gradient and its square once their bias is gone.
        step = 0.01 * weight.grad * scale / ((weight.grad * scale).abs() + 1e-8)
        found = trainer.model.get_parameter(name)
        torch.testing.assert_close(found, weight - step, rtol=1e-6, atol=1e-8)
    assert trainer.progress.target_tokens == tokens


def test_a_row_of_training_is_the_mean_since_the_row_before(data, tmp_path):
    trainer = begin(data, tmp_path / "run", updates=4, accumulate=2, log_every=2, lr=STILL)
    order = trainer.order + trainer.gradients.batches.order(1, 2)
    expected = []
    for batches in (order[:4], order[4:8]):
        total, tokens = likelihood(trainer, trainer.model, batches)
        expected.append(total.item() / tokens)
    finish(trainer)
    assert [row["update"] for row in rows(trainer, "train")] == ["2", "4"]
    assert column(trainer, "train", "loss") == pytest.approx(expected, rel=1e-9)
    perplexities = [math.exp(mean) for mean in expected]
    assert column(trainer, "train", "perplexity") == pytest.approx(perplexities, rel=1e-9)


@pytest.mark.parametrize(("accumulate", "updates"), [(1, 4), (3, 2), (9, 1)])
def test_an_epoch_sees_each_pair_once(data, tmp_path, monkeypatch, accumulate, updates):
    """Ten pairs make four batches of three."""
    true_of, seen = Gradients.of, []

    def of(self, chosen, *following):
        seen.append([int(pair) for batch in chosen for pair in batch])
        return true_of(self, chosen, *following)

    monkeypatch.setattr(Gradients, "of", of)
    trainer = begin(data, tmp_path / "run", epochs=2, accumulate=accumulate, lr=STILL)
    assert trainer.total_updates() == 2 * updates
    finish(trainer)
    assert len(seen) == trainer.progress.update == 2 * updates
    for epoch in (seen[:updates], seen[updates:]):
        assert sorted(itertools.chain(*epoch)) == list(range(len(PAIRS)))
    words = sum(len(line.split()) + 1 for line in PAIRS)
    assert trainer.progress.target_tokens == 2 * words


@pytest.mark.parametrize(
    ("every", "validated"),
    [
        (None, ["4", "8", "10"]),
        ("3", ["3", "6", "9", "10"]),
        ("99", ["10"]),
        ("0.0000001m", [*"123456789", "10"]),
    ],
)
def test_when_it_validates(data, tmp_path, every, validated):
    """Each epoch of four updates, or after so many updates or minutes; and at the end."""
    trainer = begin(data, tmp_path / "run", updates=10, validate_every=every)
    finish(trainer)
    assert [row["update"] for row in rows(trainer, "valid")] == validated
    assert trainer.done()


def test_patience_and_plateau(data, tmp_path):
    """New bests are the first and third; from then on three validations bring none."""
    trainer = begin(
        data, tmp_path / "run", updates=99, validate_every="1", patience=3, plateau=2, lr=0.008
    )
    trainer.validator = Scripted((1, 9), (1, 9), (2, 9), (2, 9), (1, 1), (2, 9.5))
    finish(trainer)
    assert trainer.out_of_patience()
    # A row is written after the rate was adapted, in which the next update is made.
    assert column(trainer, "valid", "learning_rate") == [0.008, 0.008, 0.008, 0.008, 0.004, 0.004]
    assert column(trainer, "train", "learning_rate") == [0.008] * 5 + [0.004]
    assert (trainer.progress.best_update, trainer.progress.validations_since_best) == (3, 3)


def test_the_rate_of_an_update_is_the_schedules(data, tmp_path):
    """Four updates an epoch; weights move by about the rate in Adam's first steps."""
    trainer = begin(data, tmp_path / "run", epochs=3, halve_from=2, lr=0.008)
    finish(trainer)
    assert column(trainer, "train", "learning_rate") == [0.008] * 4 + [0.004] * 4 + [0.002] * 4
    assert trainer.optimizer.rate == 0.002


@pytest.mark.parametrize(
    ("by", "scores", "best"),
    [
        ("bleu", [(1, 9), (3, 9), (2, 1)], 2),
        ("bleu", [(0, 9), (0, 8), (0, 8)], 2),  # of the same BLEU, less perplexity is better
        ("bleu", [(0, 9), (0, math.nan), (0, 10)], 1),
        ("bleu", [(0, math.nan), (0, 9), (0, math.nan)], 2),
        ("perplexity", [(1, 9), (3, 9.5), (2, 1)], 3),
        ("perplexity", [(1, 9), (3, math.nan), (2, 10)], 1),
    ],
)
def test_which_weights_are_the_best(data, tmp_path, by, scores, best):
    trainer = begin(data, tmp_path / "run", updates=3, validate_every="1", best_by=by, keep=3)
    trainer.validator = Scripted(*scores)
    finish(trainer)
    bleu, perplexity = scores[best - 1]
    progress = trainer.progress
    assert progress.best_update == best
    assert progress.best_score == (bleu if by == "bleu" else -perplexity)
    assert progress.best_perplexity == perplexity
    kept = load_file(trainer.folder.updates()[best - 1] / "weights.safetensors")
    found = load_file(trainer.folder.best)
    assert all(found[name].equal(kept[name]) for name in kept)


def test_only_the_last_checkpoints_are_kept(data, tmp_path):
    trainer = begin(data, tmp_path / "run", updates=5, validate_every="1", keep=2)
    finish(trainer)
    names = sorted(path.name for path in trainer.folder.checkpoints.iterdir())
    assert names == ["best.safetensors", "update-00000004", "update-00000005"]


def test_without_validation_data_the_last_weights_are_the_best(tmp_path):
    corpus = make_corpus(tmp_path, valid=None)
    trainer = begin(corpus.folder, tmp_path / "run", updates=2)
    assert trainer.validator is None
    finish(trainer)
    assert rows(trainer, "valid") == []
    found = load_file(trainer.folder.best)
    for name, weight in trainer.model.named_parameters():
        assert found[name].equal(weight)


def test_dropout_acts_in_training_and_validations_change_nothing(data, tmp_path):
    losses = {}
    for name, every, dropout in (("none", "4", 0.0), ("some", "4", 0.5), ("often", "1", 0.5)):
        model = small_model(dropout=dropout)
        options = {"model": model, "updates": 4, "validate_every": every}
        trainer = begin(data, tmp_path / name, **options)
        finish(trainer)
        losses[name] = column(trainer, "train", "loss")
    assert all(one != other for one, other in zip(losses["none"], losses["some"], strict=True))
    assert losses["often"] == losses["some"]


def test_time_of_validations_is_part_of_all_time(data, tmp_path, monkeypatch):
    """On a clock that goes on a second a look, each update and each validation takes one."""
    looks = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: float(next(looks)))
    monkeypatch.setattr("nmtflex.training.loop.time", clock)
    trainer = begin(data, tmp_path / "run", updates=6, validate_every="2")
    trainer.validator = Scripted(*[(0, 9)] * 3)
    finish(trainer)
    assert trainer.progress.validation_seconds == 3
    assert trainer.progress.seconds == 6 + 3


def test_what_is_large_is_cut_and_adds_up_to_the_same(data, tmp_path):
    losses = []
    for name, largest in (("whole", None), ("pieces", 6)):
        trainer = begin(data, tmp_path / name, updates=4)
        trainer.gradients.largest = largest
        finish(trainer)
        losses.append(column(trainer, "train", "loss"))
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)


def test_a_resumed_training_equals_an_unbroken_one_bit_for_bit(data, tmp_path):
    options = {"model": small_model(dropout=0.3), "halve_from": 2}
    for updates in (3, 6, 9):
        finish(begin(data, tmp_path / "parts", updates=updates, **options))
    parts = begin(data, tmp_path / "parts", updates=9, **options)
    whole = begin(data, tmp_path / "whole", updates=9, **options)
    assert parts.done()
    finish(whole)
    for name, weight in whole.model.named_parameters():
        assert weight.equal(parts.model.get_parameter(name))
    assert column(whole, "train", "loss") == column(parts, "train", "loss")
