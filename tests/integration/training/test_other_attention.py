"""A trained run gets another attention: train --config RUN/config.json --init-from RUN."""

from __future__ import annotations

import json

import pytest
from safetensors.torch import load_file
from small_trainings import BEST, rows, weights

pytestmark = pytest.mark.integration


@pytest.fixture
def base(train, tmp_path):
    run = tmp_path / "base"
    assert train(run, "--attention", "global", "--dropout", 0.1, "--updates", 6).code == 0
    return run


def test_a_run_gets_another_attention(command_line, base, tmp_path):
    run = tmp_path / "flexible"
    given = ("--attention", "flexible", "--sigma", 2, "--updates", 5, "--lr", 3e-4)
    begin = ("train", "--config", base / "config.json", "--init-from", base)
    outcome = command_line(*begin, "--run", run, *given)
    assert (outcome.code, outcome.out) == (0, "")
    assert f"those of {base}; the others begin at random: decoder.attention.gate" in " ".join(
        outcome.err.split()
    )
    model, loop = (json.loads((run / "config.json").read_text())[key] for key in ("model", "train"))
    assert (model["attention"]["kind"], model["attention"]["sigma"]) == ("flexible", 2)
    assert (model["dropout"], loop["lr"], loop["init_from"]) == (0.1, 3e-4, str(base))
    assert rows(run, "valid")[0]["update"] == "0"  # the weights as they begin

    # It goes on bit for bit, and begins where it says.
    whole = command_line(*begin, "--run", tmp_path / "whole", *given[:-3], 9, "--lr", 3e-4)
    again = command_line("train", "--run", run, "--updates", 9)
    assert (whole.code, again.code) == (0, 0)
    assert weights(run) == weights(tmp_path / "whole")
    line = command_line("info", run).out
    assert f"nmtflex train {tmp_path}" not in line
    assert "--init-from" in line


def test_the_first_scores_are_those_of_the_base(train, command_line, base, tmp_path):
    """With the same attention and a rate near 0, nothing changes."""
    begin = ("train", "--config", base / "config.json", "--init-from", base, "--updates", 1)
    assert command_line(*begin, "--run", tmp_path / "same", "--lr", 1e-30).code == 0
    before, after = (load_file(run / BEST) for run in (base, tmp_path / "same"))
    assert all(after[name].equal(weight) for name, weight in before.items())
    assert (
        rows(tmp_path / "same", "valid")[0]["perplexity"] == rows(base, "valid")[-1]["perplexity"]
    )


def test_a_base_that_cannot_be_is_said_in_a_line(command_line, prepared, base, tmp_path):
    for first, run in (("nothing", tmp_path / "no"), (base, base)):
        outcome = command_line("train", prepared, "--run", run, "--init-from", first)
        assert outcome.code in (1, 2)
        assert str(first) in outcome.err
        assert len(outcome.err.splitlines()) == 1
    assert not (tmp_path / "no").exists()
