"""Guided alignment through the commands, on the copy task, whose links are the diagonal."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

ONE_THREAD = ("--threads", 1, "--device", "cpu")
MODEL = (
    "--encoder", "transformer", "--encoder-layers", 1, "--encoder-heads", 2, "--encoder-size", 16,
    "--decoder", "ssru", "--decoder-layers", 1, "--decoder-heads", 2, "--decoder-size", 16,
    "--embedding-size", 16, "--dropout", 0,
)  # fmt: skip
LOOP = ("--batch-sentences", 16, "--lr", 1e-2, "--valid-beam", 1, "--log-every", 10)


@pytest.fixture
def run_command(command_line):
    def run(*arguments: object):
        outcome = command_line(*arguments)
        assert outcome.code == 0, outcome.err
        return outcome

    return run


@pytest.fixture
def copying(run_command, tmp_path) -> Path:
    """Prepare the copy task with its links; ``FOLDER/test.links`` has those of the test split."""
    sizes = ("--max-length", 6, "--vocabulary", 8, "--train", 600, "--valid", 20, "--test", 40)
    run_command("generate", "copy", *sizes, "--out", tmp_path / "copy")
    for split in ("train", "valid", "test"):
        lines = (tmp_path / "copy" / f"{split}.src").read_text().splitlines()
        diagonal = [" ".join(f"{n}-{n}" for n in range(len(line.split()))) for line in lines]
        (tmp_path / f"{split}.links").write_text("".join(f"{line}\n" for line in diagonal))
    run_command(
        "preprocess", "--source-lang", "src", "--target-lang", "tgt", "--out", tmp_path / "data",
        *(word for split in ("train", "valid", "test")
          for word in (f"--{split}", tmp_path / "copy" / split)),
        "--guided-alignment", tmp_path / "train.links",
        "--valid-alignment", tmp_path / "valid.links",
    )  # fmt: skip
    return tmp_path


def rows(run: Path, split: str) -> list[dict[str, str]]:
    with (run / "metrics.csv").open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["split"] == split]


def trained(run_command, folder: Path, name: str, *options: object) -> Path:
    run = folder / name
    run_command("train", folder / "data", "--run", run, *MODEL, *LOOP, *ONE_THREAD, *options)
    return run


@pytest.mark.slow
def test_guided_attention_finds_the_diagonal(run_command, copying) -> None:
    rates = {}
    for weight in (0, 3):
        options = ("--guided-weight", weight, "--updates", 100, "--schedule", "linear")
        run = trained(run_command, copying, f"run{weight}", *options)
        outcome = run_command(
            "eval", run, "--gold-alignment", copying / "test.links", "--json", "--beam", 1,
            *ONE_THREAD,
        )  # fmt: skip
        rates[weight] = json.loads(outcome.out)["aer"]
        losses = [row["alignment_loss"] for row in rows(run, "train") + rows(run, "valid")[-1:]]
        if weight:
            assert float(losses[0]) > 1 > 0.5 > float(losses[-1]) > 0
        else:
            assert set(losses) == {""}
    assert rates[3] < 5 < 15 < rates[0]


def test_an_interrupted_training_resumes_bit_for_bit(run_command, copying) -> None:
    options = ("--guided-weight", 0.5, "--guided-layer", 1, "--guided-head", 2)
    whole = trained(run_command, copying, "whole", *options, "--updates", 12)
    for updates in (5, 12):
        parts = trained(run_command, copying, "parts", *options, "--updates", updates)
    weights = "checkpoints/update-00000012/weights.safetensors"
    tensors, others = (load_file(run / weights) for run in (parts, whole))
    assert tensors.keys() == others.keys()
    assert all(torch.equal(tensor, others[name]) for name, tensor in tensors.items())
    one, two = ([row["alignment_loss"] for row in rows(run, "train")] for run in (whole, parts))
    assert one == two
    assert len(one) == 1


def test_the_base_of_a_finetuning_is_guided_too(run_command, copying) -> None:
    base = trained(run_command, copying, "base", "--updates", 2)
    run_command(
        "finetune", base, "--run", copying / "tuned", "--guided-weight", 1, "--updates", 4,
        "--log-every", 2, "--valid-beam", 1, *ONE_THREAD,
    )  # fmt: skip
    assert all(float(row["alignment_loss"]) > 0 for row in rows(copying / "tuned", "train"))
    assert all(float(row["alignment_loss"]) > 0 for row in rows(copying / "tuned", "valid"))


def test_what_guided_training_needs_is_said_in_a_line(command_line, run_command, copying) -> None:
    data = copying / "data"
    run_command(
        "preprocess", "--like", data, "--source-lang", "src", "--target-lang", "tgt",
        "--train", copying / "copy" / "train", "--out", copying / "plain",
    )  # fmt: skip
    guided = ("--guided-weight", 0.5)
    for arguments, values in (
        ((copying / "plain", *guided), ("--guided-weight 0.5", "plain", "--guided-alignment")),
        ((data, *guided, "--attention", "none"), ("--guided-weight 0.5", "attention none")),
        ((data, *guided, "--guided-head", 3, *MODEL), ("--guided-head 3", "2")),
        ((data, "--guided-layer", 1), ("--guided-layer 1", "--guided-weight")),
    ):
        outcome = command_line("train", *arguments, "--run", copying / "no", *ONE_THREAD)
        assert (outcome.code, outcome.out) == (2, "")
        assert [value for value in values if value not in outcome.err] == []
        assert not (copying / "no").exists()
