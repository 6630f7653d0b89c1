"""What nmtflex info says of runs that the commands made, and the command lines that runs keep."""

from __future__ import annotations

import json
import shlex

import pytest
from safetensors.torch import load_file
from small_trainings import SMALL, rows, weights

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def run(tmp_path_factory, prepared):
    """A run in a folder whose name needs quotes, trained twice and finished once more."""
    from nmtflex.cli.app import main

    folder = tmp_path_factory.mktemp("info") / "a run"
    for updates in (4, 7, 7):
        line = ["train", prepared, "--run", folder, *SMALL, "--keep", 3, "--updates", updates]
        assert main([str(word) for word in line]) == 0
    return folder


def described(command_line, run):
    outcome = command_line("info", run, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    return json.loads(outcome.out)


def history(run):
    return [json.loads(line) for line in (run / "commands.jsonl").read_text().splitlines()]


def test_a_run_keeps_the_command_lines_that_trained_it(run, prepared):
    """The third found it finished, and trained nothing."""
    kept = history(run)
    words = [shlex.split(record["command"]) for record in kept]
    assert [record["update"] for record in kept] == [0, 4]
    assert words[0][:5] == ["nmtflex", "train", str(prepared), "--run", str(run)]
    assert [line[-2:] for line in words] == [["--updates", "4"], ["--updates", "7"]]
    assert kept[0]["time"] <= kept[1]["time"]


def test_numbers_of_a_run(command_line, run, prepared):
    found = described(command_line, run)
    file = load_file(run / "checkpoints" / "best.safetensors")
    assert found["parameters"]["all"] == sum(tensor.numel() for tensor in file.values())
    parts = {name: count for name, count in found["parameters"].items() if name != "all"}
    assert sum(parts.values()) == found["parameters"]["all"]
    embeddings = sum(file[name].numel() for name in file if name.endswith("embedding.weight"))
    assert parts["embeddings"] == embeddings
    best = max(rows(run, "valid"), key=lambda row: (float(row["bleu"]), -float(row["perplexity"])))
    assert found["best"] == {
        "update": int(best["update"]),
        "bleu": float(best["bleu"]),
        "perplexity": float(best["perplexity"]),
    }
    assert found["progress"]["update"] == 7
    sizes = [path.stat().st_size for path in run.rglob("*") if path.is_file()]
    assert found["bytes"]["all"] == sum(sizes)
    assert found["data"]["folder"] == str(prepared.resolve())
    assert found["data"]["there"]
    assert [record["command"] for record in found["commands"]] == [
        record["command"] for record in history(run)
    ]


def test_the_options_make_the_same_run(command_line, run, tmp_path):
    words = shlex.split(described(command_line, run)["options"])
    assert words[0] == "nmtflex"
    words[words.index("--run") + 1] = str(tmp_path / "again")
    assert command_line(*words[1:]).code == 0
    assert weights(tmp_path / "again") == weights(run)


def test_lines_for_a_person(command_line, run):
    outcome = command_line("info", run)
    assert (outcome.code, outcome.err) == (0, "")
    names = [line[:11].strip() for line in outcome.out.splitlines()]
    assert names == [
        "run", "made by", "data", "source", "target", "options", "parameters", "bytes",
        "progress", "best", "history", "",
    ]  # fmt: skip


def test_average_and_finetune_are_kept_in_their_own_runs(command_line, run, tmp_path):
    mean, tuned = tmp_path / "mean", tmp_path / "tuned"
    assert command_line("average", run, "--last", 2, "--run", mean).code == 0
    line = ["finetune", run, "--run", tuned, "--updates", 2, "--threads", 1, "--device", "cpu"]
    assert command_line(*line).code == 0
    assert [shlex.split(record["command"])[1] for record in history(mean)] == ["average"]
    assert [shlex.split(record["command"])[1] for record in history(tuned)] == ["finetune"]
    averaged = shlex.split(described(command_line, mean)["options"])
    assert averaged[1:] == ["average", str(run.resolve()), "--run", str(mean), "--last", "2"]
    finetuned = shlex.split(described(command_line, tuned)["options"])
    assert finetuned[1:5] == ["finetune", str(run), "--run", str(tuned)]
    assert "--embedding-size" not in finetuned  # the base run's


def test_a_damaged_history_is_named(command_line, run, tmp_path):
    file = run / "commands.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"time": 1}\n')
    outcome = command_line("info", run)
    file.write_bytes(whole)
    assert (outcome.code, outcome.out) == (1, "")
    assert f"{file}:3: damaged" in outcome.err


def test_runs_without_history_or_weights(command_line, tiny_run):
    """Runs of earlier versions, and those that have reached no checkpoint."""
    assert described(command_line, tiny_run)["commands"] == []
    (tiny_run / "checkpoints" / "best.safetensors").unlink()
    found = described(command_line, tiny_run)
    assert (found["parameters"], found["best"], found["progress"]) == (None, None, None)
    assert command_line("info", tiny_run).code == 0


def test_what_is_no_run(command_line, prepared, tmp_path):
    for path in (tmp_path / "nowhere", prepared):
        outcome = command_line("info", path)
        assert (outcome.code, outcome.out) == (1, "")
        assert str(path) in outcome.err
