"""A mechanism added as docs/adding-a-mechanism.md says: one file, one config class, one import.

The page's own example is taken. It runs in a process of its own, so that no other test sees it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "adding-a-mechanism.md"

# What the two files that the page names import already.
HEAD = """
from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import torch
from torch import Tensor

from nmtflex.attention import UNLIMITED, Attention, Glimpse, Limits, Sizes, State, Trace
from nmtflex.attention.base import register
from nmtflex.config import AttentionConfig, Opt
"""

DRIVER = """
import io, json, sys

import uniform  # the import line

from nmtflex.cli.app import main


def run(arguments, given):
    streams = [io.TextIOWrapper(io.BytesIO(given.encode()))]
    streams += [io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2)]
    sys.stdin, sys.stdout, sys.stderr = streams
    code = main(arguments)
    out, err = (stream.buffer.getvalue().decode() for stream in streams[1:])
    return {"code": code, "out": out, "err": err}


product = sys.stdout
json.dump([run(*item) for item in json.load(sys.stdin)], product)
"""

SMALL = ["--embedding-size", "6", "--encoder-size", "4", "--decoder-size", "8"]
PLACE = ["--threads", "1", "--device", "cpu"]
LINES = ["a b c", "", "zebra b"]


def example() -> str:
    """Return the page's mechanism as a module."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    return "\n\n".join([HEAD, *blocks])


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Run all commands one after the other; return what came of each, by name."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "uniform.py").write_text(example(), encoding="utf-8")
    (folder / "driver.py").write_text(DRIVER, encoding="utf-8")
    for split in ("train", "valid", "test"):
        lines = [" ".join("abcdef"[: 1 + number % 5]) for number in range(20)]
        (folder / f"{split}.lo").write_text("".join(f"{line}\n" for line in lines))
        (folder / f"{split}.up").write_text("".join(f"{line.upper()}\n" for line in lines))
    splits = [item for name in ("train", "valid", "test") for item in (f"--{name}", name)]
    languages = ["--source-lang", "lo", "--target-lang", "up"]
    train = ["train", "prepared", *SMALL, *PLACE, "--updates", "2"]
    text = "".join(f"{line}\n" for line in LINES)
    translate = ["--max-length", "6", *PLACE, "--stats", "--attention-output", "attention"]
    commands = {
        "preprocess": (["preprocess", *splits, *languages, "--out", "prepared"], ""),
        "train": ([*train, "--run", "run", "--attention", "uniform", "--scale", "0.5"], ""),
        "translate": (["translate", "run", *translate, "--replace-unk"], text),
        "eval": (["eval", "run", "--json", *PLACE], ""),
        "help": (["train", "--help"], ""),
        "other": ([*train, "--run", "no", "--attention", "global", "--scale", "0.5"], ""),
        "wrong": ([*train, "--run", "no", "--attention", "uniform", "--scale", "0"], ""),
        "tau": (["translate", "run", *PLACE, "--tau", "1.5"], text),
        "finetune": (["finetune", "run", "--run", "new", "--updates", "1", *PLACE], ""),
    }
    done = subprocess.run(
        [sys.executable, "driver.py"],
        input=json.dumps(list(commands.values())),
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"COLUMNS": "200"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = dict(zip(commands, json.loads(done.stdout), strict=True))
    found["attention"] = (folder / "attention").read_text().splitlines()
    found["config"] = json.loads((folder / "run" / "config.json").read_text())
    return found


@pytest.mark.parametrize("command", ["preprocess", "train", "translate", "eval", "finetune"])
def test_every_command_takes_it(outcomes, command):
    assert outcomes[command]["code"] == 0, outcomes[command]["err"]


def test_the_run_keeps_its_options(outcomes):
    assert outcomes["config"]["model"]["attention"] == {"kind": "uniform", "scale": 0.5}
    assert "uniform attention" in outcomes["train"]["err"]


def test_it_translates_and_is_counted(outcomes):
    lines = outcomes["translate"]["out"].split("\n")
    assert len(lines) == len(LINES) + 1
    assert lines[1] == lines[3] == ""
    assert "CPS 0.00 " in outcomes["translate"]["err"]
    scores = json.loads(outcomes["eval"]["out"])
    assert (scores["sentences"], scores["cps"]) == (20, 0.0)


def test_its_weights_are_in_the_attention_file(outcomes):
    found = [json.loads(line) for line in outcomes["attention"]]
    assert [len(record["source"]) for record in found] == [3, 0, 2]
    for record in found[::2]:
        weight = round(1 / len(record["source"]), 6)
        assert record["weights"] == [[weight] * len(record["source"])] * len(record["target"])
        assert record["computed"] == [0] * len(record["target"])
        assert record["gate"] is None
    assert found[1]["weights"] is None


def test_its_option_is_in_the_help(outcomes):
    text = outcomes["help"]["out"]
    assert outcomes["help"]["code"] == 0
    assert "Attention: uniform" in text
    assert "--scale" in text
    assert "uniform" in text.split("Attention: uniform")[0]  # among the choices of --attention


def test_its_option_belongs_to_it(outcomes):
    assert outcomes["other"]["code"] == 2
    message = "--scale belongs to --attention uniform, not to global"
    assert f"nmtflex: error: {message}" in outcomes["other"]["err"]
    assert outcomes["wrong"]["code"] == 2
    assert "--scale must be greater than 0, not 0.0" in outcomes["wrong"]["err"]


def test_what_it_has_not_is_refused(outcomes):
    assert outcomes["tau"]["code"] == 2
    assert "--tau 1.5 needs flexible attention, and run has uniform" in outcomes["tau"]["err"]


def test_it_keeps_the_contract(tmp_path):
    (tmp_path / "uniform.py").write_text(example(), encoding="utf-8")
    contract = ROOT / "tests" / "unit" / "attention" / "test_contract.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "uniform", "-k", "uniform", contract]
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path},
        check=False,
    )
    assert done.returncode == 0, done.stdout  # 5 where nothing was collected


def test_nothing_of_it_is_left_here():
    from nmtflex.config import AttentionConfig

    assert "uniform" not in AttentionConfig.variants()
