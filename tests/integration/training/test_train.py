"""nmtflex train: resuming, interruptions, schedules."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from backwards import (
    BEST,
    SMALL,
    make_prepared,
    max_checkpoint,
    rows,
    tensors,
    wait_for_rows,
    weights,
)
from safetensors.torch import load_file

from nmtflex.training.validation import Validator

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("extra", [[], ["--accumulate", "2", "--cell", "gru"]])
def test_a_resumed_run_equals_an_unbroken_one_bit_for_bit(train, tmp_path, extra):
    assert train(tmp_path / "whole", "--updates", 20, *extra).code == 0
    for updates in (3, 9, 20):
        outcome = train(tmp_path / "parts", "--updates", updates, *extra)
        assert outcome.code == 0, outcome.err
    assert "resuming" in outcome.err
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
    assert rows(tmp_path / "parts", "train") == rows(tmp_path / "whole", "train")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_the_state_and_resuming_equals_an_unbroken_run(
    train, prepared, tmp_path, number
):
    options = [*SMALL, "--updates", "4000", "--validate-every", "100000"]
    command = [sys.executable, "-m", "nmtflex", "train", prepared, "--run", tmp_path / "cut"]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True) as process:
        wait_for_rows(tmp_path / "cut" / "metrics.csv", 20)
        process.send_signal(number)
        _, err = process.communicate(timeout=900)
    assert process.returncode == 128 + number
    assert f"stopped by {number.name} at update" in err.splitlines()[-1]
    assert "Traceback" not in err
    stopped = json.loads((max_checkpoint(tmp_path / "cut") / "progress.json").read_text())
    goal = stopped["update"] + 5
    for folder in ("cut", "whole"):
        assert train(tmp_path / folder, "--validate-every", 100000, "--updates", goal).code == 0
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")
    assert rows(tmp_path / "cut", "train") == rows(tmp_path / "whole", "train")


def test_a_run_stopped_in_its_last_validation_is_validated_when_it_goes_on(
    train, tmp_path, monkeypatch
):
    from nmtflex.training.validation import Validator

    def stop(self, model, check, show):
        os.kill(os.getpid(), signal.SIGTERM)
        check()

    with monkeypatch.context() as patch:
        patch.setattr(Validator, "__call__", stop)
        assert train(tmp_path / "cut", "--updates", 5).code == 128 + signal.SIGTERM
    assert not (tmp_path / "cut" / "checkpoints" / "best.safetensors").exists()
    assert train(tmp_path / "cut", "--updates", 5).code == 0
    assert train(tmp_path / "whole", "--updates", 5).code == 0
    assert rows(tmp_path / "cut", "valid") == rows(tmp_path / "whole", "valid")
    assert tensors(tmp_path / "cut" / BEST) == tensors(tmp_path / "whole" / BEST)
    assert "is finished" in train(tmp_path / "cut", "--updates", 5).err


def test_a_full_disk_after_a_validation_leaves_the_checkpoint_made_before_it(
    train, tmp_path, monkeypatch
):
    """Saved by --save-every, then validated at the same update, with a single checkpoint kept."""
    run = tmp_path / "run"
    options = ["--keep", 1, "--save-every", 1e-9, "--updates", 4]

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("nmtflex.training.loop.save_best", full)
        assert train(run, *options).code == 1
    assert max_checkpoint(run).name == "update-00000004"
    assert train(run, *options).code == 0
    assert train(tmp_path / "whole", "--updates", 4).code == 0
    assert weights(run) == weights(tmp_path / "whole")


def test_validation_is_counted_once(train, tmp_path, monkeypatch):
    from nmtflex.training.validation import Validator

    true_call = Validator.__call__

    def slow(self, model, check, show):
        time.sleep(0.5)
        return true_call(self, model, check, show)

    monkeypatch.setattr(Validator, "__call__", slow)
    began = time.monotonic()
    train(tmp_path / "run", "--updates", 6, "--validate-every", 2)
    wall = time.monotonic() - began
    progress = json.loads((max_checkpoint(tmp_path / "run") / "progress.json").read_text())
    assert 1.5 <= progress["validation_seconds"] <= progress["seconds"] <= wall


def test_float64_weights_come_back_as_they_were(train, tmp_path):
    from nmtflex.config import DeviceConfig
    from nmtflex.runs.run import load_run

    train(tmp_path / "run", "--updates", 3, "--dtype", "float64")
    saved = load_file(tmp_path / "run" / "checkpoints" / "best.safetensors")
    run = load_run(tmp_path / "run", DeviceConfig(device="cpu", threads=1, dtype="float64"))
    for name, parameter in run.model.named_parameters():
        assert parameter.equal(saved[name])


def test_data_that_moved_is_the_same_data(train, prepared, tmp_path):
    train(tmp_path / "run", "--updates", 2)
    shutil.copytree(prepared, tmp_path / "moved")
    assert train(tmp_path / "run", "--updates", 4, data=tmp_path / "moved").code == 0


def test_a_full_disk_leaves_the_checkpoint_before(train, tmp_path, monkeypatch):
    run = tmp_path / "run"
    train(run, "--updates", 4)
    before = {path: path.read_bytes() for path in max_checkpoint(run).iterdir()}

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("nmtflex.training.checkpoint._trainer_tensors", lambda *_: full(0))
        outcome = train(run, "--updates", 8)
    assert outcome.code == 1
    assert outcome.err.splitlines()[-1] == (
        f"nmtflex: error: {run / 'checkpoints' / 'update-00000008'}: No space left on device; the "
        f"training stopped at update 8, and the last checkpoint, of update 4, is whole: make room "
        f"and give the same command again"
    )
    assert {path: path.read_bytes() for path in max_checkpoint(run).iterdir()} == before
    assert list((run / "checkpoints").glob(".*")) == []
    assert train(run, "--updates", 8).code == 0


def test_what_a_killed_training_left_half_written_is_removed(train, tmp_path):
    run = tmp_path / "run"
    train(run, "--updates", 2)
    (run / "checkpoints" / ".update-00000004.x1").mkdir()
    (run / "checkpoints" / ".update-00000004.x1" / "weights.safetensors").write_text("half")
    (run / "checkpoints" / ".best.safetensors.x2").write_text("half")
    assert train(run, "--updates", 4).code == 0
    assert list((run / "checkpoints").glob(".*")) == []


def test_an_epoch_sees_each_batch_once_however_many_an_update_takes(train, tmp_path):
    """200 pairs make 13 batches of 16."""
    for accumulate, updates in ((1, 13), (2, 7), (5, 3)):
        run = tmp_path / f"run{accumulate}"
        train(run, "--epochs", 1, "--accumulate", accumulate)
        assert max_checkpoint(run).name == f"update-{updates:08d}"
        tokens = {row["target_tokens"] for row in rows(run, "valid")}
        assert tokens == {rows(tmp_path / "run1", "train")[-1]["target_tokens"]}


def test_dropout_acts_in_training_and_validations_change_nothing(train, tmp_path):
    options = ["--updates", 4, "--validate-every"]
    for name, every, dropout in (("none", 4, 0.0), ("some", 4, 0.5), ("often", 1, 0.5)):
        train(tmp_path / name, *options, every, "--dropout", dropout)
    losses = {
        name: [row["loss"] for row in rows(tmp_path / name, "train")]
        for name in ("none", "some", "often")
    }
    assert all(one != other for one, other in zip(losses["none"], losses["some"], strict=True))
    assert losses["often"] == losses["some"]


def test_the_rate_halves_from_an_epoch_on(train, tmp_path):
    train(tmp_path / "run", "--epochs", 4, "--lr", 0.008, "--halve-from", 3)
    rates = [float(row["learning_rate"]) for row in rows(tmp_path / "run", "valid")]
    assert rates == [0.008, 0.008, 0.004, 0.002]


def test_plateau_and_patience(train, tmp_path):
    """A rate so small that no weight changes: no validation beats the first."""
    train(tmp_path / "run", "--lr", 1e-30, "--plateau", 2, "--patience", 5)
    valid = rows(tmp_path / "run", "valid")
    rates = [float(row["learning_rate"]) for row in valid]
    assert len(valid) == 6
    # The row is written after the rate was adapted: validations 2 and 4 without a new best.
    assert rates == [1e-30, 1e-30, 5e-31, 5e-31, 2.5e-31, 2.5e-31]


def test_best_by_perplexity(train, tmp_path):
    train(tmp_path / "run", "--epochs", 3, "--best-by", "perplexity")
    valid = rows(tmp_path / "run", "valid")
    best = min(valid, key=lambda row: float(row["perplexity"]))
    progress = json.loads((max_checkpoint(tmp_path / "run") / "progress.json").read_text())
    assert progress["best_update"] == int(best["update"])
    assert progress["best_score"] == -float(best["perplexity"])


def test_of_the_same_bleu_the_least_perplexity_is_the_best(train, tmp_path):
    """After so few updates no four words in a row are right, so every BLEU is 0."""
    options = ["--epochs", 4, "--lr", 1e-3, "--validate-every", 3]
    train(tmp_path / "run", *options)
    valid = rows(tmp_path / "run", "valid")
    assert {float(row["bleu"]) for row in valid} == {0.0}
    perplexities = [float(row["perplexity"]) for row in valid]
    progress = json.loads((max_checkpoint(tmp_path / "run") / "progress.json").read_text())
    best = min(valid, key=lambda row: float(row["perplexity"]))
    assert progress["best_update"] == int(best["update"]) > int(valid[0]["update"])
    assert progress["best_perplexity"] == min(perplexities)


@pytest.mark.parametrize("by", ["bleu", "perplexity"])
def test_a_perplexity_that_is_no_number_is_the_worst(train, tmp_path, monkeypatch, by):
    """A model may overflow over data that it was not trained on."""
    results = iter([8.0, math.nan, 9.0])
    validate = Validator.__call__

    def found(self, *arguments):
        return validate(self, *arguments)._replace(bleu=0.0, perplexity=next(results))

    monkeypatch.setattr(Validator, "__call__", found)
    options = ["--updates", 6, "--validate-every", 2, "--best-by", by]
    assert train(tmp_path / "run", *options).code == 0
    progress = json.loads((max_checkpoint(tmp_path / "run") / "progress.json").read_text())
    assert (progress["best_update"], progress["best_perplexity"]) == (2, 8.0)


def test_only_the_last_checkpoints_are_kept(train, tmp_path):
    train(tmp_path / "run", "--updates", 10, "--validate-every", 2, "--keep", 3)
    names = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert names == ["best.safetensors"] + [f"update-{n:08d}" for n in (6, 8, 10)]


def test_without_validation_data_the_last_weights_are_the_best(train, tmp_path):
    data = make_prepared(tmp_path, seed=3, valid=None)
    assert train(tmp_path / "run", "--epochs", 1, data=data).code == 0
    assert tensors(tmp_path / "run" / BEST) == weights(tmp_path / "run")


def test_training_learns_and_its_best_weights_translate(train, tmp_path):
    sizes = ["--embedding-size", 24, "--encoder-size", 24, "--decoder-size", 48]
    options = [*sizes, "--epochs", 40, "--lr", 0.01, "--dropout", 0, "--decoder", "luong"]
    run = tmp_path / "run"
    assert train(run, *options).code == 0
    bleu = [float(row["bleu"]) for row in rows(run, "valid")]
    assert max(bleu) > 50
    import nmtflex

    assert nmtflex.load(run, beam=3).translate(["a b c", ""])[1] == ""


def test_updates_may_stand_in_a_file_without_quotes(train, tmp_path):
    options = tmp_path / "options.toml"
    options.write_text("validate-every = 2\nupdates = 4\n")
    assert train(tmp_path / "run", "--config", options).code == 0
    assert [row["update"] for row in rows(tmp_path / "run", "valid")] == ["2", "4"]
