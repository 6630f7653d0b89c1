"""A run gives what the command that goes on with it leaves out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_trainings import SMALL, make_prepared, max_checkpoint, rows, weights

pytestmark = pytest.mark.integration

OWN = ["--seed", 3, "--attention", "local-m", "--window", 2, "--dtype", "float64", "--clip", 1]


def options(run: Path) -> dict[str, object]:
    config = json.loads((run / "config.json").read_text())
    return {**config["model"], **config["train"], **config["device"]}


@pytest.fixture
def begun(train, tmp_path) -> Path:
    """A run of four updates whose options are not the defaults."""
    assert train(tmp_path / "run", *OWN, "--updates", 4).code == 0
    return tmp_path / "run"


def test_a_run_alone_goes_on(train, command_line, begun, tmp_path):
    train(tmp_path / "whole", *OWN, "--updates", 8)
    before = options(begun)
    outcome = command_line("train", "--run", begun, "--updates", 8)
    assert (outcome.code, outcome.out) == (0, "")
    assert f"resuming {begun} at update 4: " in outcome.err
    assert weights(begun) == weights(tmp_path / "whole")
    assert options(begun) == before | {"updates": 8}


def test_epochs_take_the_place_of_the_runs_updates(command_line, begun):
    outcome = command_line("train", "--run", begun, "--epochs", 1)
    assert outcome.code == 0
    assert max_checkpoint(begun).name == "update-00000013"
    assert (options(begun)["epochs"], options(begun)["updates"]) == (1, None)


def test_data_and_some_options_may_be_given(command_line, prepared, begun):
    given = ("--window", 2, "--attention", "local-m", "--clip", 1, "--updates", 5)
    assert command_line("train", prepared, "--run", begun, *given).code == 0


@pytest.mark.parametrize(
    ("given", "change"),
    [
        (["--clip", 2], "--clip was 1.0, not 2.0"),
        (["--window", 3], "--window was 2, not 3"),
        (["--attention", "none"], "--attention was local-m --window 2, not none"),
        (["--batch-tokens", 99], "--batch-tokens was not given, now 99"),
    ],
)
def test_what_is_given_and_differs_is_named(command_line, begun, given, change):
    outcome = command_line("train", "--run", begun, "--updates", 8, *given)
    assert outcome.code == 2
    assert change in outcome.err
    assert "--seed" not in outcome.err  # not given, so no difference
    assert max_checkpoint(begun).name == "update-00000004"


def test_options_of_validation_may_change(command_line, begun):
    more = ("--validate-every", 2, "--valid-beam", 1, "--best-by", "perplexity")
    assert command_line("train", "--run", begun, "--updates", 8, *more).code == 0
    valid = rows(begun, "valid")
    assert [row["update"] for row in valid] == ["4", "6", "8"]
    progress = json.loads((max_checkpoint(begun) / "progress.json").read_text())
    least = min(float(row["perplexity"]) for row in valid)
    assert progress["best_score"] == -least  # that of the first validation counts too
    assert command_line("train", "--run", begun, "--updates", 9, "--best-by", "bleu").code == 0
    progress = json.loads((max_checkpoint(begun) / "progress.json").read_text())
    assert progress["best_score"] == max(float(row["bleu"]) for row in rows(begun, "valid"))


def test_the_options_of_a_run_are_a_config_file(command_line, begun, tmp_path):
    new = tmp_path / "new"
    config = begun / "config.json"
    assert command_line("train", "--config", config, "--run", new, "--updates", 4).code == 0
    assert weights(new) == weights(begun)
    outcome = command_line("finetune", begun, "--config", config, "--run", tmp_path / "tuned")
    assert outcome.code == 2
    assert f"{config} belongs to a run made by nmtflex train, not finetune" in outcome.err
    (tmp_path / "other.json").write_text("{}")
    outcome = command_line("train", "--config", tmp_path / "other.json", "--run", tmp_path / "x")
    assert outcome.code == 2
    assert (
        f"{tmp_path / 'other.json'} is not a run's config.json: it has no 'format'" in outcome.err
    )


def test_data_that_is_not_there_is_named(command_line, train, tmp_path):
    data = make_prepared(tmp_path, seed=9)
    assert train(tmp_path / "run", "--updates", 2, data=data).code == 0
    data.rename(tmp_path / "moved")
    outcome = command_line("train", "--run", tmp_path / "run", "--updates", 4)
    assert outcome.code == 2
    assert f"{tmp_path / 'run'} was made from {data}" in outcome.err
    assert "; give DATA" in outcome.err
    again = ("--run", tmp_path / "run", "--updates", 4)
    assert command_line("train", tmp_path / "moved", *again).code == 0


def test_a_finetuning_goes_on_by_its_run_alone(command_line, begun, tmp_path):
    tuned = tmp_path / "tuned"
    small = SMALL[SMALL.index("--valid-beam") :]
    first = ("finetune", begun, "--run", tuned, "--freeze", "encoder.*", "--updates", 2, *small)
    assert command_line(*first, "--dtype", "float64").code == 0
    before = options(tuned)
    assert command_line("finetune", "--run", tuned, "--updates", 4).code == 0
    assert max_checkpoint(tuned).name == "update-00000004"
    assert options(tuned) == before | {"updates": 4}
    outcome = command_line("train", "--run", tuned, "--updates", 4)
    assert outcome.code == 2
    assert f"{tuned} was made by nmtflex finetune; resume it with that" in outcome.err


def test_a_new_run_still_needs_data(command_line, tmp_path):
    outcome = command_line("train", "--run", tmp_path / "new")
    assert outcome.code == 2
    assert "DATA" in outcome.err
