"""nmtflex finetune: what it refuses."""

from __future__ import annotations

import json
import shutil

import pytest

pytestmark = pytest.mark.integration


def test_other_options_than_it_began_with_are_refused(finetune, bases, tmp_path):
    finetune(bases.flexible, tmp_path / "new", "--updates", 2)
    outcome = finetune(bases.flexible, tmp_path / "new", "--updates", 4, "--beta", 3, "--tau", 2)
    assert outcome.code == 2
    assert "--beta was 0.1, not 3.0" in outcome.err
    assert "--tau was auto, not 2" in outcome.err


def test_another_base_run_than_it_began_with_is_refused(finetune, bases, tmp_path):
    """It would go on from the weights of the first base, and say nothing."""
    options = ["--lr", 0.001, "--updates"]
    assert finetune(bases.flexible, tmp_path / "second", *options, 3).code == 0
    assert finetune(bases.flexible, tmp_path / "new", *options, 2).code == 0
    outcome = finetune(tmp_path / "second", tmp_path / "new", *options, 4)
    assert outcome.code == 2
    assert outcome.err.startswith(f"nmtflex: error: {tmp_path / 'new'} did not start from ")
    assert f"{tmp_path / 'second'}; give its base run, or another --run" in outcome.err
    shutil.copytree(bases.flexible, tmp_path / "moved")  # but a base may move
    outcome = finetune(tmp_path / "moved", tmp_path / "new", *options, 4)
    assert outcome.code == 0, outcome.err


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (
            "encodr.*",
            "--freeze 'encodr.*' matches no weights; there are encoder.*, decoder.*, "
            "target_embedding.*, output.*; did you mean encoder.*?",
        ),
        ("*", "--freeze * leaves nothing to train"),
    ],
)
def test_a_pattern_in_vain_is_an_error_that_leaves_no_run(
    finetune, bases, tmp_path, pattern, message
):
    new = tmp_path / "new"
    outcome = finetune(bases.flexible, new, "--updates", 2, "--freeze", pattern)
    assert outcome.code == 2
    assert f"nmtflex: error: {message}" in outcome.err
    # The corrected command must not be refused for what the wrong one left behind.
    outcome = finetune(bases.flexible, new, "--updates", 2, "--freeze", "encoder.*")
    assert outcome.code == 0, outcome.err


def test_another_vocabulary_is_refused(finetune, bases, tmp_path):
    outcome = finetune(bases.flexible, tmp_path / "new", "--data", bases.strange)
    assert outcome.code == 1
    message = f"{bases.strange} has another source vocabulary than {bases.flexible}"
    assert f"nmtflex: error: {message}; preprocess with --like {bases.flexible}" in outcome.err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tau", "inf"], "--tau inf needs flexible attention, and {run} has global"),
        (["--tau", "some"], "--tau must be a number of at least 0, inf or auto, not 'some'"),
        (["--beta", -1], "--beta must be at least 0, not -1.0"),
    ],
)
def test_what_needs_a_gate_is_refused_without_one(finetune, bases, tmp_path, options, message):
    outcome = finetune(bases.plain, tmp_path / "new", *options)
    assert outcome.code == 2
    assert f"nmtflex: error: {message.format(run=bases.plain)}" in outcome.err
    assert not (tmp_path / "new").exists()


def test_a_run_is_not_finetuned_into_itself(finetune, bases):
    before = (bases.flexible / "config.json").read_bytes()
    for spelling in (bases.flexible, bases.flexible.parent / "memory" / ".." / "flexible"):
        outcome = finetune(bases.flexible, spelling)
        assert outcome.code == 2
        assert f"{spelling} was made by nmtflex train; resume it with that, or give another" in (
            outcome.err
        )
    assert (bases.flexible / "config.json").read_bytes() == before


@pytest.mark.parametrize("name", ["gone", "x" * 300])  # no file has so long a name
def test_training_data_that_is_gone_is_named(finetune, bases, tmp_path, name):
    base = tmp_path / "base"
    shutil.copytree(bases.plain, base)
    config = json.loads((base / "config.json").read_text())
    config["train"]["data"] = str(tmp_path / name)
    (base / "config.json").write_text(json.dumps(config))
    outcome = finetune(base, tmp_path / "new")
    assert outcome.code == 2
    message = f"{base} was trained on {tmp_path / name}, which does not exist; give --data"
    assert f"nmtflex: error: {message}" in outcome.err
    assert finetune(base, tmp_path / "new", "--data", bases.data, "--updates", 1).code == 0
