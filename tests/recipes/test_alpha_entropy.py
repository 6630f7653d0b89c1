"""The entropy of alpha, by hand."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "recipes" / "alpha_entropy.py"


@pytest.fixture
def entropies():
    spec = importlib.util.spec_from_file_location("alpha_entropy", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.entropies


def test_one_position_alone_and_all_alike(entropies):
    sharp_and_flat = json.dumps({"alpha": [[0.5, 0.2], [0.0, 0.2]]})  # a slot a column
    empty = json.dumps({"alpha": None})
    expected = (math.log(2) / 2, math.log(2), 0)
    assert entropies([sharp_and_flat, empty]) == pytest.approx(expected)


def test_scale_does_not_matter(entropies):
    [first, second] = [
        entropies([json.dumps({"alpha": [[a], [3 * a], [0.0]]})]) for a in (0.01, 0.25)
    ]
    assert first == pytest.approx(second)
    assert first[0] == pytest.approx(-(0.25 * math.log(0.25) + 0.75 * math.log(0.75)))


def test_slots_that_hold_nothing_are_counted_apart(entropies):
    lines = [json.dumps({"alpha": [[0.0, 0.2], [0.0, 0.2]]}), json.dumps({"alpha": [[0.0, 0.0]]})]
    assert entropies(lines) == pytest.approx((math.log(2), math.log(2), 3))
    with pytest.raises(ValueError, match="no slot holds anything"):
        entropies(lines[1:])
