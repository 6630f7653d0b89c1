"""nmtflex average: what its run can be used for."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from nmtflex.cli.app import main

pytestmark = pytest.mark.integration

SMALL = [
    "--embedding-size", 6, "--encoder-size", 4, "--decoder-size", 8, "--threads", 1,
    "--device", "cpu", "--batch-sentences", 16, "--valid-beam", 1,
]  # fmt: skip
PLACE = ["--threads", 1, "--device", "cpu"]


def call(*arguments: object) -> None:
    assert main([str(argument) for argument in arguments]) == 0


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    """A run with three checkpoints."""
    folder = tmp_path_factory.mktemp("average")
    draw = random.Random(1)
    splits = []
    for split, pairs in (("train", 60), ("valid", 8), ("test", 8)):
        lines = [" ".join(draw.choices("abcd", k=draw.randint(1, 6))) for _ in range(pairs)]
        (folder / f"{split}.lo").write_text("".join(f"{line}\n" for line in lines))
        (folder / f"{split}.up").write_text("".join(f"{line.upper()}\n" for line in lines))
        splits += [f"--{split}", folder / split]
    call("preprocess", "--source-lang", "lo", "--target-lang", "up", *splits, "--out", folder / "p")
    call(
        "train", folder / "p", "--run", folder / "run", *SMALL, "--updates", 6, "--keep", 3,
        "--validate-every", 2,
    )  # fmt: skip
    return folder / "run"


@pytest.fixture(scope="module")
def mean(base) -> Path:
    call("average", base, "--last", 3)
    return base.with_name("run-average3")


def test_it_says_what_it_averaged(command_line, base, tmp_path) -> None:
    outcome = command_line("average", base, "--last", 2, "--run", tmp_path / "mean")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.startswith(f"nmtflex: {tmp_path / 'mean'}: ")
    assert outcome.err.endswith(f"{base} at updates 4, 6\n")


def test_it_translates_and_is_scored_and_joins_an_ensemble(command_line, base, mean) -> None:
    outcome = command_line("eval", mean, "--json", *PLACE)
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["update"] == 6
    outcome = command_line("translate", mean, base, *PLACE, "-i", base.parent / "test.lo")
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("\n") == 8


def test_it_is_reported_on(command_line, base, mean, tmp_path) -> None:
    outcome = command_line("report", base, mean, "--out", tmp_path / "page.html", *PLACE)
    assert outcome.code == 0, outcome.err


def test_it_is_finetuned_from_the_rate_of_its_last_checkpoint(command_line, mean, tmp_path) -> None:
    new = tmp_path / "new"
    options = ("--updates", 2, "--keep", 2, "--valid-beam", 1, "--validate-every", 1, *PLACE)
    outcome = command_line("finetune", mean, "--run", new, *options)
    assert outcome.code == 0, outcome.err
    assert json.loads((new / "config.json").read_text())["train"]["lr"] == 0.001
    assert command_line("average", new, "--last", 2).code == 0


@pytest.mark.parametrize("name", ["train", "finetune"])
def test_it_is_no_training_to_resume(command_line, base, mean, name) -> None:
    before = (mean / "checkpoints" / "best.safetensors").read_bytes()
    given = base.parent / "p" if name == "train" else base
    options = [*SMALL, "--updates", 6] if name == "train" else ["--updates", 6, *PLACE]
    outcome = command_line(name, given, "--run", mean, *options)
    assert outcome.code == 1
    assert f"{mean} was made by nmtflex average and has no training to resume" in outcome.err
    assert (mean / "checkpoints" / "best.safetensors").read_bytes() == before


def test_too_few_checkpoints(command_line, base) -> None:
    outcome = command_line("average", base)
    assert (outcome.code, outcome.err.count("\n")) == (1, 1)
    assert "3 checkpoints (of updates 2, 4, 6), fewer than --last 5" in outcome.err
