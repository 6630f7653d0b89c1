"""nmtflex train: resuming, interruptions, schedules."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
from safetensors.torch import load_file
from small_trainings import (
    BEST,
    SMALL,
    max_checkpoint,
    rows,
    tensors,
    wait_for_rows,
    weights,
)

from nmtflex.training.validation import Validator

pytestmark = pytest.mark.integration


LAYERED = [
    *("--encoder", "transformer", "--encoder-heads", "2", "--encoder-layers", "1"),
    *("--decoder", "ssru", "--decoder-heads", "2", "--attention", "flexible"),
    *("--encoder-ffn", "16", "--decoder-ffn", "16"),
    *("--attention-dropout", "0.1", "--ffn-dropout", "0.1", "--position-shift", "9"),
    *("--encoder-window", "3"),
]


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param([], marks=pytest.mark.slow),
        pytest.param(["--accumulate", "2", "--cell", "gru"], marks=pytest.mark.slow),
        LAYERED,
    ],
)
def test_a_resumed_run_equals_an_unbroken_one_bit_for_bit(train, tmp_path, extra):
    assert train(tmp_path / "whole", "--updates", 20, *extra).code == 0
    for updates in (3, 9, 20):
        outcome = train(tmp_path / "parts", "--updates", updates, *extra)
        assert outcome.code == 0, outcome.err
    assert "resuming" in outcome.err
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
    assert rows(tmp_path / "parts", "train") == rows(tmp_path / "whole", "train")


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM]
)
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


def test_float64_weights_come_back_as_they_were(train, tmp_path):
    from nmtflex.config import DeviceConfig
    from nmtflex.runs.opening import load_run

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
        f"training stopped at update 8, and the last checkpoint, of update 4, is intact: make room "
        f"and give the same command again"
    )
    assert {path: path.read_bytes() for path in max_checkpoint(run).iterdir()} == before
    assert list((run / "checkpoints").glob(".*")) == []
    assert train(run, "--updates", 8).code == 0


def test_training_learns_and_its_best_weights_translate(train, tmp_path):
    sizes = ["--embedding-size", 24, "--encoder-size", 24, "--decoder-size", 48]
    options = [*sizes, "--epochs", 40, "--lr", 0.01, "--dropout", 0, "--decoder", "luong"]
    run = tmp_path / "run"
    assert train(run, *options, "--validate-every", 130).code == 0
    bleu = [float(row["bleu"]) for row in rows(run, "valid")]
    assert max(bleu) > 50
    import nmtflex

    assert nmtflex.load(run, beam=3).translate(["a b c", ""])[1] == ""


def test_updates_may_stand_in_a_file_without_quotes(train, tmp_path):
    options = tmp_path / "options.toml"
    options.write_text("validate-every = 2\nupdates = 4\n")
    assert train(tmp_path / "run", "--config", options).code == 0
    assert [row["update"] for row in rows(tmp_path / "run", "valid")] == ["2", "4"]
