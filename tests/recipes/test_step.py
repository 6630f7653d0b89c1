"""A step is left out where its own output is there, and refuses one that is not its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

UNTIL = 900  # seconds that something may take on a busy machine
SCRIPT = Path(__file__).parents[2] / "recipes" / "step.py"
# Copies its input into what it makes, and counts how often it ran.
PROGRAM = """#!/usr/bin/env python3
import sys, time
from pathlib import Path
command, *arguments = sys.argv[1:]
values = dict(zip(arguments[::2], arguments[1::2]))
with Path("ran").open("a") as log:
    log.write(command + "\\n")
if command == "eval":
    print('{"bleu": 1}')
if command == "tokenize":
    print(sys.stdin.read().upper(), end="")
if "--fail" in values:
    sys.exit(int(values["--fail"]))
if "--out" in values:
    out = Path(values["--out"])
    out.mkdir()
    (out / "manifest.json").write_text(Path(values["--train"] + ".en").read_text())
    if "--slow" in values:
        time.sleep(3600)
if "--run" in values:
    best = Path(values["--run"]) / "checkpoints" / "best.safetensors"
    best.parent.mkdir(parents=True, exist_ok=True)
    if Path("interrupt").exists():
        sys.exit(130)
    best.write_text(values["--lr"])
"""
PREPARE = "preprocess --out out/p --source-lang en --target-lang ja --train ./train"
TRAIN = "train --data out/p --run out/r --lr 1"


@pytest.fixture
def step(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "program"
    program.write_text(PROGRAM.replace("/usr/bin/env python3", sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("NMTFLEX", str(program))
    monkeypatch.setenv("NMTFLEX_VERSION", "nmtflex 1.2.3")
    monkeypatch.setenv("RECIPE", "some.sh")
    Path("train.en").write_text("a\n")
    Path("train.ja.xz").write_text("b\n")

    def run(arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, SCRIPT, *arguments.split()],
            capture_output=True,
            text=True,
            check=False,
        )
        last = (done.stderr.splitlines() or [""])[-1]
        return done.returncode, last

    return run


def ran() -> list[str]:
    return Path("ran").read_text().split() if Path("ran").exists() else []


def test_a_step_is_done_once(step):
    assert step(f"out/p {PREPARE}")[0] == 0
    assert step(f"out/p {PREPARE}") == (0, "-- out/p is there")
    assert ran() == ["preprocess"]
    stamp = json.loads(Path("out/p.step").read_text())
    assert stamp["state"] == "done"
    assert stamp["nmtflex"] == "nmtflex 1.2.3"
    assert stamp["inputs"].keys() == {"train.en", "train.ja.xz"}


def test_folders_and_times_may_change(step):
    step(f"out/p {PREPARE}")
    Path("train.en").touch()
    Path("out").rename("elsewhere")
    absolute = PREPARE.replace("./train", str(Path.cwd() / "train"))
    assert step(f"elsewhere/p {absolute.replace('out/p', 'elsewhere/p')}") == (
        0,
        "-- elsewhere/p is there",
    )
    assert ran() == ["preprocess"]


def test_what_is_deleted_is_made_again(step):
    step("--stdout out/s.json eval --x ./train.en")
    Path("out/s.json").unlink()
    assert step("--stdout out/s.json eval --x ./train.en --y 2")[0] == 0
    assert json.loads(Path("out/s.json").read_text()) == {"bleu": 1}
    assert ran() == ["eval", "eval"]
    assert sorted(path.name for path in Path("out").iterdir()) == ["s.json", "s.json.step"]


def test_a_side_output_that_is_deleted_is_made_again(step):
    line = "--stdout out/s.json eval --output out/s.txt"
    step(line)
    assert step(line)[0] == 0
    assert ran() == ["eval", "eval"]  # this program writes no side output
    Path("out/s.txt").touch()
    assert step(line) == (0, "-- out/s.json is there")


def test_a_sweep_writes_two_files_beside_its_table(step):
    line = "--stdout out/s.json sweep --output out/s"
    assert step(line)[0] == 0
    for name in ("s.csv", "s.png"):
        step(line)
        assert ran() == ["sweep"] * len(ran())
        before = len(ran())
        assert step(line)[0] == 0
        assert len(ran()) == before + 1  # not there yet
        Path("out", name).touch()
    assert step(line) == (0, "-- out/s.json is there")


def test_inputs_may_have_one_name(step):
    Path("other").mkdir()
    Path("other/train.en").write_text("a\n")
    line = "--stdout out/s.json eval --hypothesis ./train.en --reference other/train.en"
    assert step(line)[0] == 0
    assert step(line) == (0, "-- out/s.json is there")
    Path("other/train.en").write_text("b\n")
    assert "was made from another other/train.en" in step(line)[1]


def test_standard_input_is_an_input(step):
    line = "--stdin train.en --stdout out/t tokenize"
    assert step(line)[0] == 0
    assert Path("out/t").read_text() == "A\n"
    Path("train.en").write_text("c\n")
    assert "was made from another train.en" in step(line)[1]


def test_other_settings_are_refused(step):
    step(f"out/p {PREPARE} --bpe 100 --joint")
    assert step(f"out/p {PREPARE} --bpe 200 --joint") == (
        1,
        "some.sh: out/p was made with other settings: --bpe 100, now --bpe 200; delete it, or set "
        "OUT to another folder",
    )
    assert "other settings: --bpe 100 --joint, now nothing;" in step(f"out/p {PREPARE}")[1]
    assert "its options in another order" in step(f"out/p {PREPARE} --joint --bpe 100")[1]
    assert ran() == ["preprocess"]


def test_another_version_is_refused(step, monkeypatch):
    step(f"out/p {PREPARE}")
    monkeypatch.setenv("NMTFLEX_VERSION", "nmtflex 2.0.0")
    code, line = step(f"out/p {PREPARE}")
    assert code == 1
    assert "out/p was made by nmtflex 1.2.3, and this is nmtflex 2.0.0; delete it" in line


def test_a_changed_input_is_refused(step):
    step(f"out/p {PREPARE}")
    Path("train.en").write_text("other\n")
    code, line = step(f"out/p {PREPARE}")
    assert code == 1
    assert "out/p was made from another train.en (sha256 87428fc52280, 2 bytes; now" in line
    assert line.endswith(", 6 bytes); delete it, or set OUT to another folder")
    Path("train.en").write_text("a\n")
    Path("train.en.gz").touch()
    assert "made from other files: train.en.gz is new" in step(f"out/p {PREPARE}")[1]
    Path("train.en.gz").unlink()
    Path("train.ja.xz").rename("train.ja")
    assert "made from other files: train.ja is new" in step(f"out/p {PREPARE}")[1]


def test_a_folder_is_told_by_what_it_holds(step):
    step(f"out/p {PREPARE}")
    step(f"out/r {TRAIN}")
    step("--stdout out/s.json eval --run-folder out/r")
    assert step(f"out/r {TRAIN}") == (0, "-- out/r is there")
    Path("out/r/metrics.csv").touch()  # beside the weights
    assert step(f"out/r {TRAIN}") == (0, "-- out/r is there")
    Path("out/r/checkpoints/best.safetensors").write_text("2")
    assert "out/r was changed since a recipe made it; delete it" in step(f"out/r {TRAIN}")[1]
    assert (
        "out/s.json was made from another r "
        in (step("--stdout out/s.json eval --run-folder out/r")[1])
    )
    Path("out/p/manifest.json").write_text("c\n")
    assert "out/r was made from another p " in step(f"out/r {TRAIN}")[1]


def test_what_no_recipe_made_is_refused(step):
    Path("out/p").mkdir(parents=True)
    assert step(f"out/p {PREPARE}") == (
        1,
        "some.sh: out/p is there, and no recipe made it; delete it, or set OUT to another folder",
    )
    assert ran() == []


def test_a_missing_input_is_named(step):
    code, line = step(f"out/r {TRAIN}")
    assert code == 1
    assert line.startswith("some.sh: out/p is missing, which out/r is made from; if an earlier")


def test_what_the_system_refuses_is_one_line(step):
    Path("out").touch()
    assert step(f"out/p {PREPARE}") == (
        1,
        "some.sh: out: File exists; mend that and run the recipe again",
    )


def test_a_damaged_stamp_is_named(step):
    step(f"out/p {PREPARE}")
    Path("out/p.step").write_text("{")
    line = "some.sh: out/p.step: damaged; delete it together with out/p"
    assert step(f"out/p {PREPARE}") == (1, line)


def test_a_failed_step_leaves_no_output_to_reuse(step):
    assert step("--stdout out/s.json eval --fail 1")[0] == 1
    assert not Path("out/s.json").exists()
    code, line = step("--stdout out/s.json eval --fail 9")
    assert code == 1
    assert (
        line == "some.sh: out/s.json: nmtflex eval ended with exit 9; run the recipe again to go on"
    )
    assert step("--stdout out/s.json eval")[0] == 0
    code, line = step("out/x eval")
    assert (code, line) == (1, "some.sh: nmtflex eval made no out/x; report this")


def test_an_interrupted_training_goes_on(step):
    step(f"out/p {PREPARE}")
    Path("interrupt").touch()
    code, line = step(f"out/r {TRAIN}")
    assert code == 1
    assert line == "some.sh: out/r: nmtflex train was interrupted; run the recipe again to go on"
    assert json.loads(Path("out/r.step").read_text())["state"] == "begun"
    Path("out/r/kept").touch()
    assert "--lr 1, now --lr 2" in step(f"out/r {TRAIN[:-1]}2")[1]
    Path("interrupt").unlink()
    assert step(f"out/r {TRAIN}")[0] == 0
    assert Path("out/r/kept").exists()
    assert step(f"out/r {TRAIN}") == (0, "-- out/r is there")
    assert ran() == ["preprocess", "train", "train"]


@pytest.fixture
def slow_step(step):
    """Begin to prepare out/p, which takes an hour."""
    line = f"{PREPARE} --slow 1"
    process = subprocess.Popen(
        [sys.executable, SCRIPT, "out/p", *line.split()],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + UNTIL
    while not Path("out/p/manifest.json").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    yield process
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=UNTIL)


@pytest.mark.parametrize("killed", [False, True])
def test_a_step_is_made_once_at_a_time(step, slow_step, killed):
    if killed:  # the command itself lives on
        slow_step.kill()
        slow_step.wait(timeout=UNTIL)
    assert step(f"out/p {PREPARE}") == (
        1,
        "some.sh: out/p is being made by another recipe, or by what is left of one; wait for it or "
        "end it",
    )
    os.killpg(slow_step.pid, signal.SIGKILL)
    deadline = time.monotonic() + UNTIL
    while (found := step(f"out/p {PREPARE} --slow 1 --fail 2"))[1].endswith("end it"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert found[0] == 1
    assert "was made with other settings" in found[1]
    assert not list(Path("out").glob("*.lock"))


def test_another_half_made_output_is_made_anew(step, slow_step):
    process = slow_step
    Path("out/p/half").touch()
    os.kill(process.pid, signal.SIGTERM)  # which is handed on
    errors = process.communicate(timeout=UNTIL)[1]
    assert process.returncode == 1
    assert errors.endswith(
        "out/p: nmtflex preprocess was interrupted; run the recipe again to go on\n"
    )
    stamp = json.loads(Path("out/p.step").read_text())
    assert stamp["state"] == "begun"
    stamp["command"] = PREPARE.replace("out/p", "p").replace("./", "").split()
    Path("out/p.step").write_text(json.dumps(stamp))
    assert step(f"out/p {PREPARE}")[0] == 0
    assert not Path("out/p/half").exists()
