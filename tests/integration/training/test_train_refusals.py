"""nmtflex train: what it refuses."""

from __future__ import annotations

import fcntl

import pytest
from small_trainings import make_prepared, max_checkpoint

pytestmark = pytest.mark.integration


def test_two_trainings_of_one_run_are_refused(train, tmp_path):
    train(tmp_path / "run", "--updates", 2)
    with (tmp_path / "run" / ".lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        outcome = train(tmp_path / "run", "--updates", 4)
    assert outcome.code == 1
    assert f"{tmp_path / 'run'} is being trained by another process" in outcome.err
    assert train(tmp_path / "run", "--updates", 4).code == 0


def test_a_folder_that_is_no_run_is_left_alone_and_an_empty_one_is_taken(train, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").touch()
    outcome = train(tmp_path / "run", "--updates", 2)
    assert outcome.code == 1
    assert f"{tmp_path / 'run'} is not a run: it has no config.json" in outcome.err
    (tmp_path / "run" / "mine").unlink()
    assert train(tmp_path / "run", "--updates", 2).code == 0


def test_a_device_that_is_not_there_leaves_no_run_behind(train, tmp_path):
    outcome = train(tmp_path / "run", "--updates", 2, "--device", "cuda:99")
    assert outcome.code == 2
    assert "--device cuda:99" in outcome.err
    assert not (tmp_path / "run").exists()


def test_a_run_out_of_patience_says_what_to_raise(train, tmp_path):
    options = ["--lr", 1e-12, "--patience", 1]
    train(tmp_path / "run", *options)
    assert "raise --patience" in train(tmp_path / "run", *options).err


def test_without_validation_data_the_last_weights_are_told_to_be_the_best(train, tmp_path):
    data = make_prepared(tmp_path, seed=3, valid=None)
    outcome = train(tmp_path / "run", "--updates", 2, data=data)
    assert outcome.code == 0
    told = outcome.err.splitlines()
    assert told[0] == (
        f"nmtflex: {data} has no validation data: no BLEU is computed, and the last weights count "
        f"as the best"
    )
    assert "best" not in told[-1]


def test_a_finished_run_says_so(train, tmp_path):
    assert train(tmp_path / "run", "--epochs", 1).code == 0
    outcome = train(tmp_path / "run", "--epochs", 1)
    assert outcome.code == 0
    assert "run is finished: 13 updates, 1 epoch; raise --epochs" in outcome.err
    assert outcome.out == ""
    assert train(tmp_path / "run", "--epochs", 2).code == 0
    assert max_checkpoint(tmp_path / "run").name == "update-00000026"


def test_other_options_than_the_run_has_are_refused_by_name(train, tmp_path):
    train(tmp_path / "run", "--updates", 2)
    outcome = train(tmp_path / "run", "--updates", 4, "--lr", 0.5, "--dropout", 0.1)
    assert outcome.code == 2
    assert "--lr was 0.001, not 0.5" in outcome.err
    assert "--dropout was 0.2, not 0.1" in outcome.err
    outcome = train(tmp_path / "run", "--updates", 4, "--attention", "none")
    assert outcome.code == 2
    assert "run with other options: --attention was global, not none; leave out" in outcome.err
    assert train(tmp_path / "run", "--updates", 4, "--patience", 9, "--keep", 1).code == 0


def test_other_data_than_the_run_has_is_refused(train, tmp_path):
    train(tmp_path / "run", "--updates", 2)
    other = make_prepared(tmp_path, seed=50)
    outcome = train(tmp_path / "run", "--updates", 4, data=other)
    assert outcome.code == 2
    assert "the prepared data is not the data it was trained on" in outcome.err
