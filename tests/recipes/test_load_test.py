"""The load test: its figures by hand, and the whole of it on a tiny run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "recipes" / "load_test.py"
GOLDEN = Path(__file__).parents[1] / "golden" / "bahdanau-global"


@pytest.fixture
def recipe(script):
    return script("load_test")


def test_figures(recipe):
    """100 answers of 1 to 100 ms, one of them 503, in two seconds."""
    answers = [recipe.Answer(503 if n == 50 else 200, n / 1000, 3) for n in range(100, 0, -1)]
    load = recipe.Load(answers, 2.0)
    assert load.rate == 50
    assert load.words == 99 * 3 / 2
    assert [round(load.time(share)) for share in (0.5, 0.95, 0.99, 1.0)] == [50, 95, 99, 100]
    assert load.statuses == "99 of 200, 1 of 503"
    assert recipe.Load(answers[:1], 1.0).time(0.5) == 100


def test_the_table_has_medians_and_shares_of_the_same_round(recipe):
    def load(words):
        return recipe.Load([recipe.Answer(200, 0.01, words)], 1.0)

    loads = {1: [load(10), load(20), load(90)], 8: [load(50), load(60), load(70)]}
    rows = [
        line.strip("| ").split("|") for line in recipe.table(loads, [100, 50, 100]).splitlines()
    ]
    cells = [[cell.strip() for cell in row] for row in rows[2:]]
    assert cells == [
        ["1", "1.0", "10", "10", "10", "20", "40%"],
        ["8", "1.0", "10", "10", "10", "60", "70%"],
        ["translate", "", "", "", "", "100", "100%"],
    ]


@pytest.mark.slow
def test_the_whole_of_it_on_a_tiny_run():
    few = ("--clients", "1", "4", "--seconds", "1", "--rounds", "1", "--workers", "2")
    words = [
        sys.executable,
        SCRIPT,
        GOLDEN,
        GOLDEN / "lines.txt",
        *few,
        "--minutes",
        "0.2",
        "--kill",
    ]
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=True)
    assert re.search(r"^\| 1 \| [\d.,]+ \| ", done.stdout, re.MULTILINE)
    assert re.search(r"^\| 4 \| [\d.,]+ \| ", done.stdout, re.MULTILINE)
    assert set(re.findall(r"of (\d+)(?=[,\n])", done.stdout)) <= {"200", "503"}
    assert re.search(
        r"^kill -9 of a worker: all translate again after [\d.]+ s", done.stdout, re.MULTILINE
    )
