"""The mistakes that ``tests/mutants`` plants fit the source: each text stands there once."""

from __future__ import annotations

import runpy
from pathlib import Path

TREE = Path(__file__).parents[2]


def test_every_text_to_be_changed_stands_there_once(monkeypatch):
    folder = TREE / "tests" / "mutants"
    monkeypatch.syspath_prepend(str(folder))
    found = [
        mutant
        for path in sorted(folder.glob("mutants_*.py"))
        for values in runpy.run_path(str(path)).values()
        if isinstance(values, list)
        for mutant in values
    ]
    assert len(found) > 150
    for mutant in found:
        text = (TREE / mutant.file).read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1, mutant
        assert mutant.new != mutant.old
        assert (TREE / mutant.tests.split()[0].split("::")[0]).exists(), mutant
