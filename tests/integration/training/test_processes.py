"""torchrun: several processes that train, finetune and translate as one would."""

from __future__ import annotations

import csv
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file
from small_trainings import max_checkpoint, wait_for_rows

pytestmark = [pytest.mark.integration, pytest.mark.slow]

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
SIZES = "--embedding-size 8 --encoder-size 8 --decoder-size 8 --valid-beam 2"
SMALL = f"{SIZES} --log-every 1 --device cpu --dtype float64".split()
OPTIONS = f"""{" ".join(SMALL)} --attention flexible --dropout 0 --updates 60
    --validate-every 15 --clip 0.25 --label-smoothing 0.1""".split()
UNTIL = 900  # seconds that a start may take on a busy machine


def command(*arguments: object, restarts: int = 0) -> list[str]:
    return [
        *TORCHRUN,
        "--max-restarts",
        str(restarts),
        "-m",
        "nmtflex",
        "--",  # torchrun would read --run as its own --run-path
        *map(str, arguments),
    ]


def torchrun(*arguments: object, **given: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=UNTIL, check=False, **given
    )


def rows(run: Path) -> list[dict[str, str]]:
    with (run / "metrics.csv").open(newline="") as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


def assert_close(one: object, two: object) -> None:
    """Compare what JSON or a table can hold, numbers to 1e-9."""
    if isinstance(one, dict):
        assert one.keys() == two.keys()
        one, two = list(one.values()), list(two.values())
    if isinstance(one, list):
        assert len(one) == len(two)
        for left, right in zip(one, two, strict=True):
            assert_close(left, right)
    elif isinstance(one, float):
        assert math.isclose(one, two, rel_tol=1e-9, abs_tol=1e-9)
    else:
        assert one == two


def numbers(table: list[dict[str, str]]) -> list[dict[str, object]]:
    return [{k: float(v) if v and k != "split" else v for k, v in row.items()} for row in table]


def files(run: Path) -> list[str]:
    """Name what is in a run; the tensorboard's file has the time in its name."""
    return sorted(
        str(path.relative_to(run) if path.parent.name != "tensorboard" else "events")
        for path in run.rglob("*")
        if path.is_file()
    )


@pytest.fixture(scope="module")
def trained(prepared, tmp_path_factory):
    """Train flexible attention twice: alone, and in two processes of half the budget each."""
    from nmtflex.cli.app import main

    base = tmp_path_factory.mktemp("processes")
    for name, tokens in (("one", 64), ("two", 32)):
        arguments = [prepared, "--run", base / name, *OPTIONS, "--batch-tokens", tokens]
        if name == "one":
            assert main(["train", *map(str, arguments)]) == 0
        else:
            done = torchrun("train", *arguments)
            assert done.returncode == 0, done.stderr
            assert done.stderr.count("nmtflex: training") == 1
    return base


def test_two_processes_of_half_the_budget_train_as_one(trained):
    assert len(rows(trained / "one")) == 64
    assert_same_training(trained / "one", trained / "two")


def test_only_the_first_process_writes(trained):
    assert files(trained / "one") == files(trained / "two")
    assert json.loads((trained / "two" / "config.json").read_text())["processes"] == 2


def test_rates_optimiser_and_average_are_those_of_one_process(prepared, tmp_path, command_line):
    """Two processes are resumed; their average is the one of a single, unbroken process."""
    options = "--optimizer adamw --weight-decay 0.1 --schedule inverse-sqrt --warmup 5 --ema 0.9"
    options += " --dropout 0 --validate-every 6"
    one = [prepared, "--run", tmp_path / "one", *SMALL, *options.split(), "--batch-tokens", 64]
    assert command_line("train", *one, "--updates", 12).code == 0
    two = [prepared, "--run", tmp_path / "two", *SMALL, *options.split(), "--batch-tokens", 32]
    for updates in (6, 12):
        done = torchrun("train", *two, "--updates", updates)
        assert done.returncode == 0, done.stderr
    assert_close(numbers(rows(tmp_path / "one")), numbers(rows(tmp_path / "two")))
    for name in ("weights", "trainer"):
        first, second = (
            load_file(max_checkpoint(tmp_path / run) / f"{name}.safetensors")
            for run in ("one", "two")
        )
        kept = [key for key in first if not key.startswith("rng.")]
        assert any(key.endswith(":ema") for key in kept) == (name == "trainer")
        assert all((first[key] - second[key]).abs().max() < 1e-9 for key in kept)


def test_finetuning_weighs_the_gate_as_one_process_does(trained, command_line):
    options = "--beta 0.2 --updates 6 --accumulate 2 --dtype float64 --device cpu --log-every 1"
    arguments = ["finetune", trained / "one", *options.split()]
    # So small a budget that some batches are one sentence, and the second process has none.
    outcome = command_line(*arguments, "--run", trained / "tuned1", "--batch-tokens", 10)
    assert outcome.code == 0, outcome.err
    done = torchrun(*arguments, "--run", trained / "tuned2", "--batch-tokens", 5)
    assert done.returncode == 0, done.stderr
    assert_close(numbers(rows(trained / "tuned1")), numbers(rows(trained / "tuned2")))


def test_one_budget_is_found_for_all_processes(prepared, tmp_path):
    options = [*SMALL, "--batch-tokens", "auto"]
    for updates in (2, 3):  # made, and resumed with what was found
        done = torchrun(
            "train", prepared, "--run", tmp_path / "run", *options, "--updates", updates
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("--batch-tokens auto: 256 tokens a batch") == 1
    assert (
        json.loads((tmp_path / "run" / "config.json").read_text())["train"]["batch_tokens"] == 256
    )


def test_translations_are_those_of_one_process_in_order(trained, command_line):
    source = trained / "input"
    lines = ["a b c", "", "f e d c b a", "c", "a a", "b d f a", "e e e", "d"]
    source.write_text("".join(f"{line}\n" for line in lines))
    found = []
    for number, run in enumerate((command_line, torchrun)):
        out, seen = trained / f"out{number}", trained / f"seen{number}"
        options = f"--format json --n-best 2 --beam 3 --buffer 5 --stats --input {source}"
        written = ["--output", out, "--attention-output", seen, "--dtype", "float64"]
        outcome = run("translate", trained / "two", *options.split(), *written)
        assert (outcome.err if number == 0 else outcome.stderr).count("CPS ") == 1
        found.append([
            [json.loads(line) for line in path.read_text().splitlines()] for path in (out, seen)
        ])
    assert [line["source"] for line in found[1][0]] == lines
    assert_close(*found)


def rank_of(process: Path) -> str | None:
    try:
        variables = (process / "environ").read_bytes().split(b"\0")
        parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
    except OSError:  # gone meanwhile
        return None
    found = [value[5:].decode() for value in variables if value.startswith(b"RANK=")]
    return f"{parent}:{found[0]}" if found else None


def kill_worker(parent: int, rank: int) -> None:
    for process in Path("/proc").glob("[0-9]*"):
        if rank_of(process) == f"{parent}:{rank}":
            os.kill(int(process.name), signal.SIGKILL)
            return
    pytest.fail(f"torchrun {parent} has no process {rank}")


def train_and_lose_a_process(run: Path, *options: object) -> str:
    """Train in two processes, one of which is killed; return what was written meanwhile."""
    with subprocess.Popen(
        command("train", *options, "--run", run, restarts=1), stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for_rows(run / "metrics.csv", 20)  # one checkpoint is there, or more
        kill_worker(process.pid, rank=1)
        _, err = process.communicate(timeout=UNTIL)
    assert process.returncode == 0, err
    return err


def assert_same_training(one: Path, two: Path) -> None:
    first, second = (load_file(max_checkpoint(run) / "weights.safetensors") for run in (one, two))
    assert all((first[name] - second[name]).abs().max() < 1e-9 for name in first)
    assert_close(numbers(rows(one)), numbers(rows(two)))


needs_proc = pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds the processes in /proc")


@needs_proc
def test_a_lost_process_costs_nothing(prepared, trained, tmp_path):
    run = tmp_path / "cut"
    err = train_and_lose_a_process(run, prepared, *OPTIONS, "--batch-tokens", 32)
    assert "another process is lost" in err
    assert "resuming" in err
    assert_same_training(trained / "two", run)


@needs_proc
def test_it_costs_no_random_number_either(prepared, tmp_path, command_line):
    options = [prepared, *SMALL, "--dropout", 0.3, "--batch-tokens", 48, "--validate-every", 15]
    done = torchrun("train", *options, "--run", tmp_path / "whole", "--updates", 200)
    assert done.returncode == 0, done.stderr
    run = tmp_path / "cut"
    train_and_lose_a_process(run, *options, "--updates", 200)  # lost long before
    assert_same_training(tmp_path / "whole", run)
    # Another number of processes goes on with the same batches.
    outcome = command_line("train", *options, "--run", run, "--updates", 201)
    assert outcome.code == 0, outcome.err
    config = json.loads((run / "config.json").read_text())
    assert config["processes"] == 2
    last = json.loads((max_checkpoint(run) / "progress.json").read_text())
    assert last["update"] == 201


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_the_state_and_says_so_once(prepared, tmp_path, number):
    run = tmp_path / "run"
    options = [*SMALL, "--updates", 100000, "--validate-every", 100000]
    with subprocess.Popen(
        command("train", prepared, "--run", run, *options), stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for_rows(run / "metrics.csv", 20)
        process.send_signal(number)
        _, err = process.communicate(timeout=UNTIL)
    assert "SIGKILL" not in err  # which torchrun sends where a process does not end by itself
    lines = [line for line in err.splitlines() if line.startswith("nmtflex: error")]
    assert len(lines) == 1
    assert f"stopped by {number.name} at update" in lines[0]
    assert max_checkpoint(run).is_dir()


def test_an_error_is_one_line_and_keeps_its_exit_code(prepared, tmp_path):
    done = torchrun("train", tmp_path, "--run", tmp_path / "run")
    assert done.stderr.count("nmtflex: error") == 1
    assert "exitcode  : 1 " in done.stderr
