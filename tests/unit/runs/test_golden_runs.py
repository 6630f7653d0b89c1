"""Runs that an earlier state trained, kept as files, translate as they did then.

The one place where expectations are what the program printed: equations are tested elsewhere, and
this guards that a checkpoint means tomorrow what it means today. See ``tests/golden/README.md``.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden.record import OUTPUT, translated

GOLDEN = Path(__file__).parents[2] / "golden"
RUNS = sorted(path.parent for path in GOLDEN.glob("*/config.json"))


def lines_of(run: Path) -> list[str]:
    return (run / "lines.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_an_old_run_translates_as_it_did(run):
    expected = json.loads((run / OUTPUT).read_text(encoding="utf-8"))
    found = translated(run, lines_of(run), "float64")
    assert len(found) == len(expected)
    for now, then in zip(found, expected, strict=True):
        assert now["tau"] == then["tau"]
        assert now["cps"] == pytest.approx(then["cps"], abs=1e-9)
        assert now["forced"] == pytest.approx(then["forced"], abs=1e-9)
        for line, (ours, theirs) in enumerate(zip(now["n_best"], then["n_best"], strict=True)):
            assert [text for text, *_ in ours] == [text for text, *_ in theirs], line
            for mine, recorded in zip(ours, theirs, strict=True):
                assert mine[1:] == pytest.approx(recorded[1:], abs=1e-9), line


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_in_float32_the_best_translations_are_the_same(run):
    expected = json.loads((run / OUTPUT).read_text(encoding="utf-8"))
    for now, then in zip(translated(run, lines_of(run), "float32"), expected, strict=True):
        for ours, theirs in zip(now["n_best"], then["n_best"], strict=True):
            assert ours[0][0] == theirs[0][0]
            assert ours[0][1] == pytest.approx(theirs[0][1], abs=1e-4)


def test_there_is_one_of_each_paper():
    kinds = {
        json.loads((run / "config.json").read_text())["model"]["attention"]["kind"] for run in RUNS
    }
    assert kinds == {"global", "flexible", "memory"}
