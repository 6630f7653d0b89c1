"""``--processes N``: several processes without torchrun's own command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from safetensors.torch import load_file
from small_trainings import max_checkpoint, wait_for_rows

from nmtflex.cli.app import main

pytestmark = pytest.mark.integration

SIZES = "--embedding-size 8 --encoder-size 8 --decoder-size 8 --valid-beam 2 --dropout 0"
SMALL = f"{SIZES} --log-every 1 --device cpu --dtype float64".split()
UNTIL = 900  # seconds that a start may take on a busy machine


def run(*arguments: object, **given: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nmtflex", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=UNTIL, check=False, **given
    )


@pytest.fixture(scope="module")
def trained(prepared, tmp_path_factory):
    """Four updates by one process, and by two of half the budget each."""
    base = tmp_path_factory.mktemp("own")
    options = [prepared, *SMALL, "--updates", 4]
    one = [*options, "--run", base / "one", "--batch-tokens", 64]
    assert main(["train", *map(str, one)]) == 0
    two = base / "two"
    done = run("train", *options, "--run", two, "--batch-tokens", 32, "--processes", 2)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr.count(f"{two} finished after 4 updates") == 1
    return base


def test_two_processes_train_as_one(trained):
    one, two = (
        load_file(max_checkpoint(trained / name) / "weights.safetensors", backend="pread")
        for name in ("one", "two")
    )
    assert all((one[name] - two[name]).abs().max() < 1e-9 for name in one)
    assert json.loads((trained / "two" / "config.json").read_text())["processes"] == 2
    [kept] = (trained / "two" / "commands.jsonl").read_text().splitlines()
    assert json.loads(kept)["command"].endswith("--processes 2")


@pytest.mark.slow
def test_they_translate_standard_input(trained, command_line, tmp_path):
    lines, source = "a b c\n\nf e d\nc\na a\n", tmp_path / "lines"
    source.write_text(lines)
    command = ["translate", trained / "one", "--dtype", "float64"]
    alone = command_line(*command, "--input", source)
    together = run(*command, "--processes", 2, input=lines)
    assert together.stdout == alone.out
    assert together.stdout.count("\n") == 5
    assert sum("warning: " not in line for line in together.stderr.splitlines()) == 1


def test_a_wrong_option_is_one_line(tmp_path):
    done = run("train", tmp_path, "--run", tmp_path / "run", "--processes", 2, "--seed", "x")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("nmtflex: error: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_the_process_that_reports_may_be_the_slower_one(tmp_path):
    """A launcher ends every process once one has failed, so none may exit before the report."""
    wait = "import os, time\nif os.environ.get('RANK') == '0':\n    time.sleep(3)\n"
    (tmp_path / "sitecustomize.py").write_text(wait)
    places = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    done = run(
        *("train", tmp_path, "--run", tmp_path / "run", "--processes", 2),
        env={**os.environ, "PYTHONPATH": places},
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("nmtflex: error: ") == done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="sends a signal to a group, as a terminal")
def test_ctrl_c_saves_the_state_and_says_so_once(prepared, tmp_path):
    folder = tmp_path / "run"
    options = [*SMALL, "--updates", 100000, "--validate-every", 100000, "--processes", 2]
    command = [sys.executable, "-m", "nmtflex", "train", prepared, "--run", folder, *options]
    with subprocess.Popen(
        [str(word) for word in command], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        wait_for_rows(folder / "metrics.csv", 10)
        os.killpg(process.pid, signal.SIGINT)
        began = time.monotonic()
        _, err = process.communicate(timeout=UNTIL)
    assert time.monotonic() - began < 60
    assert process.returncode == 128 + signal.SIGINT
    lines = [line for line in err.splitlines() if line.startswith("nmtflex: error")]
    assert len(lines) == 1
    assert "stopped by SIGINT at update" in lines[0]
    assert "Traceback" not in err
    assert max_checkpoint(folder).is_dir()


def test_what_does_not_go_together(command_line, monkeypatch, tmp_path):
    start = ["train", tmp_path, "--run", tmp_path / "run"]
    outcome = command_line(*start, "--restarts", 2)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert "--restarts 2" in outcome.err
    assert "--processes" in outcome.err
    assert command_line(*start, "--processes", 0).code == 2
    for name, value in {"RANK": "0", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    outcome = command_line(*start, "--processes", 2)
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert "--processes 2 conflicts with torchrun" in outcome.err
