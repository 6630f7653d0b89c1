"""sweep: BLEU against computations, and the threshold that it chooses."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
import torch
from capitals import PLACE, source_lines

from nmtflex.runs.weights import load_tensors, save_tensors

pytestmark = pytest.mark.integration


@pytest.fixture
def self_taught(flexible, translate, corpus, tmp_path) -> Path:
    """A run with random weights and what it says itself without a threshold as references.

    So its BLEU is not 0, and falls with tau.
    """
    run = tmp_path / "self-taught"
    shutil.copytree(flexible, run)
    best = run / "checkpoints" / "best.safetensors"
    tensors, about = load_tensors(best)
    draw = torch.Generator().manual_seed(3)
    drawn = {name: torch.randn(x.shape, generator=draw) for name, x in sorted(tensors.items())}
    save_tensors(best, drawn, about)
    for split in ("valid", "test"):
        lines, _ = translate(run, source_lines(corpus, split), "--beam", 2)
        (run / "raw" / f"{split}.target.txt").write_text("".join(f"{x or 'A'}\n" for x in lines))
    return run


def sweep_options(tmp_path: Path) -> list[object]:
    files = ["--output", tmp_path / "v1.5"]
    return ["--tau", "1, 0.1,inf", "--beam", 2, "--max-length", 12, *files, *PLACE]


def test_sweep_as_json(self_taught, command_line, evaluate, tmp_path):
    outcome = command_line(
        "sweep",
        self_taught,
        *sweep_options(tmp_path),
        "--within",
        0.5,
        "--split",
        "valid",
        "--json",
    )
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert (found["run"], found["split"]) == (str(self_taught), "valid")
    assert [point["tau"] for point in found["points"]] == [0.1, 1.0, "inf"]
    for point in found["points"]:
        options = ["--split", "valid", "--max-length", 12]
        scores = evaluate(self_taught, *options, "--tau", point["tau"])
        for name in ("bleu", "cps", "sentences"):
            assert point[name] == scores[name], name
        assert 0 <= point["ribes"] <= 1
        assert point["seconds"] > 0
    allowed = found["points"][-1]["bleu"] - 0.5
    assert 0 < found["points"][0]["bleu"] < allowed  # so the smallest is not the chosen one
    good = [point for point in found["points"] if point["bleu"] >= allowed]
    assert found["chosen"] == good[0]
    assert good[0]["tau"] == 1.0
    assert "tau 1 is the smallest that loses at most 0.5 BLEU on valid" in outcome.err
    assert_files(tmp_path / "v1.5", found["points"])
    assert f"wrote {tmp_path / 'v1.5.csv'} and {tmp_path / 'v1.5.png'}" in outcome.err


def assert_files(base: Path, points: list[dict]) -> None:
    with base.with_name(base.name + ".csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["run"], row["split"], row["beam"]) for row in rows} == {
        ("self-taught", "valid", "2")
    }
    assert [float(row["tau"]) for row in rows] == [float(point["tau"]) for point in points]
    for name in ("bleu", "ribes", "cps", "seconds", "sentences"):
        assert [float(row[name]) for row in rows] == [point[name] for point in points]
    assert base.with_name(base.name + ".png").read_bytes().startswith(b"\x89PNG")


def test_sweep_as_a_table(self_taught, command_line, tmp_path):
    outcome = command_line("sweep", self_taught, *sweep_options(tmp_path))
    assert outcome.code == 0, outcome.err
    rows = [line.split("\t") for line in outcome.out.splitlines()]
    assert rows[0] == ["tau", "BLEU", "RIBES", "CPS", "seconds"]
    assert [row[0] for row in rows[1:]] == ["0.1", "1", "inf"]
    assert {len(row) for row in rows} == {5}
    assert all(float(cell) >= 0 for row in rows[1:] for cell in row)

    files = f"{tmp_path / 'v1.5.csv'} and {tmp_path / 'v1.5.png'}"
    assert outcome.err.endswith(f"nmtflex: wrote {files}\n")

    outcome = command_line("sweep", self_taught, *sweep_options(tmp_path), "--within", 100)
    assert outcome.err.endswith(f"nmtflex: replaced {files}\n")
    rows = [line.split("\t") for line in outcome.out.splitlines()]
    assert rows[0][-1] == "choice"
    assert [row[-1] for row in rows[1:]] == ["smallest within 100.0", "", ""]


def test_sweep_without_inf_measures_it_where_it_chooses(self_taught, command_line, tmp_path):
    options = ["--tau", "auto", "--beam", 1, "--json", *PLACE]
    found = [
        json.loads(command_line("sweep", self_taught, *options, *more).out)
        for more in ([], ["--within", 2])
    ]
    assert [len(one["points"]) for one in found] == [1, 2]
    assert found[0]["chosen"] is None
    assert found[1]["points"][1]["tau"] == "inf"
    assert (self_taught / "sweep-test-beam1.csv").is_file()
    assert (self_taught / "sweep-test-beam1.png").is_file()


def test_sweep_against_a_baseline(self_taught, command_line):
    options = ["--tau", "0.1,1", "--beam", 1, "--json", "--within", 0.5, *PLACE]
    outcome = command_line("sweep", self_taught, *options, "--baseline", 0)
    found = json.loads(outcome.out)
    assert [point["tau"] for point in found["points"]] == [0.1, 1.0]  # inf is not needed
    assert found["chosen"] == found["points"][0]
    outcome = command_line("sweep", self_taught, *options, "--baseline", 100)
    best = max(found["points"], key=lambda point: point["bleu"])
    assert json.loads(outcome.out)["chosen"] is None
    assert (
        f"every threshold loses more than 0.5 BLEU against 100 on test; the best is tau "
        f"{best['tau']:.4g} with {best['bleu']:.2f}\n"
    ) in outcome.err


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--baseline", "30.5"], 2, "--baseline 30.5 has no effect without --within"),
        (["--tau", "0.5,some"], 2, "--tau must be a number of at least 0, inf or auto, not 'some'"),
        (["--tau", ""], 2, "--tau must be a number of at least 0, inf or auto, not ''"),
        (["--tau", "-1"], 2, "--tau must be a number of at least 0, inf or auto, not '-1'"),
        (["--within", "-0.5"], 2, "--within must be at least 0, not -0.5"),
        (["--split", "dev"], 1, "{run} has no split 'dev'; there is test and valid"),
        (["--output", "{run}/no/such"], 2, "--output {run}/no/such: there is no folder {run}/no"),
    ],
)
def test_wrong_options_of_sweep(flexible, command_line, options, code, message):
    options = [option.format(run=flexible) for option in options]
    outcome = command_line("sweep", flexible, *options, *PLACE)
    assert (outcome.code, outcome.out) == (code, "")
    assert f"nmtflex: error: {message.format(run=flexible)}" in outcome.err
