"""Schedules, optimisers and the moving average in a real training."""

from __future__ import annotations

import csv
import json
import math
import signal
from pathlib import Path

import pytest
import torch
from letters import begin, config_of, finish, make_corpus, small_model
from safetensors.torch import load_file

from nmtflex.config import AdamWConfig, SGDConfig
from nmtflex.errors import OptionError, StoppedError
from nmtflex.training.checkpoint import LEAST_FACTOR, last_rate
from nmtflex.training.validation import Validator


def rates(trainer, split="train"):
    with trainer.folder.metrics.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == split]
    return [float(row["learning_rate"]) for row in rows]


def saved(run: Path, update: int, name: str) -> dict[str, torch.Tensor]:
    return load_file(run / "checkpoints" / f"update-{update:08d}" / f"{name}.safetensors")


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def unlock(trainer) -> None:
    """Let another trainer open the run, as if this process had ended."""
    trainer.folder._lock.close()


def test_the_rate_of_each_update_is_written(data, tmp_path):
    """Halved from the second epoch of four updates on, besides."""
    options = {"schedule": "linear", "warmup": 2, "halve_from": 2, "lr": 0.008}
    trainer = begin(data, tmp_path / "run", epochs=2, validate_every="1", **options)
    finish(trainer)
    factors = [1 / 2, 1, 6 / 7, 5 / 7, 4 / 14, 3 / 14, 2 / 14, 1 / 14]
    expected = [0.008 * factor for factor in factors]
    assert rates(trainer) == pytest.approx(expected, rel=1e-12)
    assert rates(trainer, "valid") == pytest.approx(expected, rel=1e-12)
    assert trainer.optimizer.rate == pytest.approx(expected[-1], rel=1e-12)


def test_weights_move_by_the_rate_of_the_update(data, tmp_path):
    """Adam's first step is the rate, whatever the gradient, where there is one."""
    steps = {}
    for warmup in (1, 4):
        trainer = begin(data, tmp_path / str(warmup), updates=4, warmup=warmup, clip=0, keep=9)
        before = trainer.model.output.projection.bias.detach().clone()
        trainer.config = trainer.config.from_dict(trainer.config.to_dict() | {"updates": 1})
        finish(trainer)
        steps[warmup] = (trainer.model.output.projection.bias - before).abs().max().item()
    assert steps[1] == pytest.approx(0.001, rel=1e-3)
    assert steps[4] == pytest.approx(0.001 / 4, rel=1e-3)


def test_some_weights_move_at_another_rate(data, tmp_path):
    factors = ["encoder.*=0.5", "output.projection.bias=3"]
    trainer = begin(data, tmp_path / "run", updates=1, clip=0, lr_factor=factors)
    before = {name: w.detach().clone() for name, w in trainer.model.named_parameters()}
    finish(trainer)
    for name, weight in trainer.model.named_parameters():
        factor = 3 if name == "output.projection.bias" else 0.5 if "encoder." in name[:8] else 1
        moved = (weight - before[name]).abs().max().item()
        assert moved == pytest.approx(0.001 * factor, rel=0.05)
    unlock(trainer)
    with pytest.raises(OptionError, match=r"--lr-factor .*encoder\.\*=0\.5"):
        begin(data, tmp_path / "run", updates=2)


def test_a_factor_for_no_weight_is_refused_before_anything_is_made(data, tmp_path):
    with pytest.raises(OptionError, match=r"--lr-factor 'strange'"):
        begin(data, tmp_path / "run", updates=1, lr_factor=["strange=2"])
    assert not (tmp_path / "run").exists()


def test_a_longer_training_follows_the_curve_to_its_new_end(data, tmp_path):
    for updates in (3, 6):
        trainer = begin(data, tmp_path / "run", updates=updates, schedule="linear", lr=0.6)
        finish(trainer)
        unlock(trainer)
    assert rates(trainer) == pytest.approx([0.6, 0.4, 0.2, 0.3, 0.2, 0.1], rel=1e-12)


def test_a_warm_up_beyond_the_end_is_refused_before_anything_is_made(data, tmp_path):
    with pytest.raises(OptionError, match=r"--warmup 9 .* 8 updates"):
        begin(data, tmp_path / "run", epochs=2, warmup=9)
    assert not (tmp_path / "run").exists()
    finish(begin(data, tmp_path / "run", epochs=2, warmup=8))
    with pytest.raises(OptionError, match=r"--warmup 8 .* 4 updates"):
        begin(data, tmp_path / "run", epochs=1, warmup=8)


def test_schedule_plateau_needs_validation_data(tmp_path):
    corpus = make_corpus(tmp_path, valid=None)
    with pytest.raises(OptionError, match=r"--schedule plateau.*--valid"):
        begin(corpus.folder, tmp_path / "run", schedule="plateau")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 0.01),
        ({"halve_from": 2}, 0.005),
        ({"schedule": "inverse-sqrt", "warmup": 2}, 0.01 * math.sqrt(2 / 5)),
        ({"schedule": "linear"}, 0.01 / 5),
    ],
)
def test_finetuning_begins_with_the_last_rate(data, tmp_path, options, expected):
    trainer = begin(data, tmp_path / "run", **{"updates": 5, "lr": 0.01, **options})
    finish(trainer)
    assert last_rate(trainer.folder) == pytest.approx(expected, rel=1e-12)
    assert last_rate(trainer.folder) == pytest.approx(rates(trainer)[-1], rel=1e-12)


def test_a_rate_near_0_is_not_where_finetuning_begins(data, tmp_path):
    trainer = begin(data, tmp_path / "run", updates=20, schedule="cosine", lr=0.01)
    finish(trainer)
    assert rates(trainer)[-1] < 0.01 * LEAST_FACTOR
    assert last_rate(trainer.folder) == pytest.approx(0.0001, rel=1e-12)


WAYS = {
    "adamw": {"optimizer": AdamWConfig(weight_decay=0.1), "schedule": "cosine", "warmup": 2},
    "sgd": {"optimizer": SGDConfig(), "lr": 0.1},
    "momentum": {
        "optimizer": SGDConfig(momentum=0.9),
        "schedule": "inverse-sqrt",
        "warmup": 4,
        "lr": 0.1,
        "ema": 0.9,
    },
    "plateau": {"schedule": "plateau", "plateau": 1, "ema": 0.5, "validate_every": "2"},
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", WAYS)
def test_a_resumed_training_equals_an_unbroken_one_bit_for_bit(data, tmp_path, monkeypatch, way):
    """Interrupted by signals, so that the end of its curves stays where it was."""
    options = {"updates": 9, "keep": 9, "model": small_model(dropout=0.3), **WAYS[way]}
    whole = begin(data, tmp_path / "whole", **options)
    finish(whole)
    for last in (2, 5, None):
        trainer = begin(data, tmp_path / "parts", **options)
        agree = stop_at(trainer, last)
        monkeypatch.setattr(trainer.ranks, "agree", agree)
        if last is None:
            finish(trainer)
        else:
            with pytest.raises(StoppedError, match=f"update {last};"):
                finish(trainer)
        unlock(trainer)
    for name in ("weights", "trainer"):
        assert_same(saved(tmp_path / "parts", 9, name), saved(tmp_path / "whole", 9, name))
    assert_same(load_file(trainer.folder.best), load_file(whole.folder.best))
    assert rates(trainer) == rates(whole)
    kept = [name for name in saved(tmp_path / "whole", 9, "trainer") if ":" in name]
    weights = len(list(whole.model.parameters()))
    assert len(kept) == weights * {"adamw": 3, "sgd": 0, "momentum": 2, "plateau": 4}[way]


def stop_at(trainer, last):
    """Receive a signal after an update."""

    def agree(received):
        return signal.SIGTERM if trainer.progress.update == last else received

    return agree


def test_the_average_is_what_validates_and_is_the_best(data, tmp_path, monkeypatch):
    seen = []
    true_call = Validator.__call__

    def call(self, model, check, show):
        seen.append({name: weight.clone() for name, weight in model.named_parameters()})
        return true_call(self, model, check, show)

    monkeypatch.setattr(Validator, "__call__", call)
    options = {"updates": 4, "validate_every": "1", "keep": 9, "lr": 0.05}
    plain = begin(data, tmp_path / "plain", **options)
    average = {name: weight.detach().clone() for name, weight in plain.model.named_parameters()}
    finish(plain)
    seen.clear()
    trainer = begin(data, tmp_path / "run", ema=0.26, **options)
    finish(trainer)
    for update in range(1, 5):
        weights = saved(tmp_path / "run", update, "weights")
        assert_same(weights, saved(tmp_path / "plain", update, "weights"))
        decay = min(0.26, (1 + update) / (10 + update))
        for name, weight in weights.items():
            average[name] = decay * average[name] + (1 - decay) * weight
            torch.testing.assert_close(seen[update - 1][name], average[name], rtol=1e-9, atol=1e-12)
            kept = saved(tmp_path / "run", update, "trainer")[f"{name}:ema"]
            assert torch.equal(kept, seen[update - 1][name])
    assert_same(load_file(trainer.folder.best), seen[trainer.progress.best_update - 1])
    last = saved(tmp_path / "run", 4, "weights")
    assert_same(dict(trainer.model.named_parameters()), last)


def test_without_validation_data_the_average_is_the_best(tmp_path):
    corpus = make_corpus(tmp_path, valid=None)
    trainer = begin(corpus.folder, tmp_path / "run", updates=3, ema=0.5)
    finish(trainer)
    best, tensors = load_file(trainer.folder.best), saved(tmp_path / "run", 3, "trainer")
    assert all(torch.equal(best[name], tensors[f"{name}:ema"]) for name in best)


def test_a_signal_in_a_validation_saves_the_weights_themselves(data, tmp_path, monkeypatch):
    options = {"updates": 4, "validate_every": "2", "ema": 0.5, "keep": 9, "lr": 0.05}
    whole = begin(data, tmp_path / "whole", **options)
    finish(whole)
    trainer = begin(data, tmp_path / "run", **options)

    def call(self, model, check, show):
        monkeypatch.setattr(trainer.ranks, "agree", lambda _: signal.SIGINT)
        check()
        pytest.fail("a signal does not stop the validation")

    with monkeypatch.context() as patch:
        patch.setattr(Validator, "__call__", call)
        with pytest.raises(StoppedError, match="update 2;"):
            finish(trainer)
    for name in ("weights", "trainer"):
        assert_same(saved(tmp_path / "run", 2, name), saved(tmp_path / "whole", 2, name))
    unlock(trainer)
    finish(begin(data, tmp_path / "run", **options))
    assert_same(saved(tmp_path / "run", 4, "weights"), saved(tmp_path / "whole", 4, "weights"))


def test_a_run_of_an_earlier_version_goes_on(data, tmp_path):
    """It has no such options in its config.json, and no factor in its progress."""
    finish(begin(data, tmp_path / "whole", updates=6, halve_from=2))
    trainer = begin(data, tmp_path / "run", updates=5, halve_from=2)
    finish(trainer)
    unlock(trainer)
    config = config_of(tmp_path / "run")
    for name in ("optimizer", "schedule", "warmup", "ema"):
        del config["train"][name]
    (tmp_path / "run" / "config.json").write_text(json.dumps(config))
    path = tmp_path / "run" / "checkpoints" / "update-00000005" / "progress.json"
    values = json.loads(path.read_text())
    del values["factor"], values["sha256"]
    path.write_text(json.dumps(values))
    assert last_rate(trainer.folder) == 0.0005
    finish(begin(data, tmp_path / "run", updates=6, halve_from=2))
    for name in ("weights", "trainer"):
        assert_same(saved(tmp_path / "run", 6, name), saved(tmp_path / "whole", 6, name))


def test_a_tied_weight_is_averaged_once(tmp_path):
    corpus = make_corpus(tmp_path, joint=True)
    model = small_model(tie_embeddings="all", bottleneck=5)
    trainer = begin(corpus.folder, tmp_path / "run", model=model, updates=2, ema=0.9)
    finish(trainer)
    assert len(trainer.optimizer.average.values) == len(list(trainer.model.parameters()))


def test_a_run_keeps_its_optimiser(data, tmp_path):
    finish(begin(data, tmp_path / "run", updates=2, optimizer=SGDConfig(momentum=0.5)))
    stored = config_of(tmp_path / "run")["train"]["optimizer"]
    assert stored == {"kind": "sgd", "weight_decay": 0.0, "momentum": 0.5}
    for other, words in (
        ({}, "--optimizer sgd --momentum 0.5, now|--optimizer was|it had"),
        ({"optimizer": SGDConfig(momentum=0.9)}, "--momentum was 0.5, not 0.9"),
        ({"optimizer": SGDConfig(momentum=0.5), "ema": 0.9}, "--ema was 0.0, not 0.9"),
        ({"optimizer": SGDConfig(momentum=0.5), "warmup": 1}, "--warmup was 0, not 1"),
    ):
        with pytest.raises(OptionError, match=words):
            begin(data, tmp_path / "run", updates=4, **other)
