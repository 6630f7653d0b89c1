"""Scores of probabilities, against loops over pairs and words."""

from __future__ import annotations

import random

import numpy as np
import pytest

from nmtflex.scoring.reliability import area_under_curve, reliability


def drawn(seed: int, count: int = 60) -> tuple[list[float], list[int]]:
    draw = random.Random(seed)
    probabilities = [round(draw.random(), 1 + seed % 2) for _ in range(count)]  # with equal ones
    return probabilities, [int(draw.random() < number) for number in probabilities]


@pytest.mark.parametrize("seed", range(8))
def test_the_area_counts_pairs(seed: int) -> None:
    probabilities, outcomes = drawn(seed)
    right = [number for number, true in zip(probabilities, outcomes, strict=True) if true]
    wrong = [number for number, true in zip(probabilities, outcomes, strict=True) if not true]
    pairs = [1.0 if a > b else 0.5 if a == b else 0.0 for a in right for b in wrong]
    found = area_under_curve(np.array(probabilities), np.array(outcomes))
    assert found == pytest.approx(sum(pairs) / len(pairs), abs=1e-12)
    # The same as that of wrong words, ranked by the probability that they are wrong.
    other = area_under_curve(1 - np.array(probabilities), 1 - np.array(outcomes))
    assert other == pytest.approx(found, abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_errors_by_a_loop(seed: int) -> None:
    probabilities, outcomes = drawn(seed)
    found = reliability(np.array(probabilities), np.array(outcomes))
    pairs = list(zip(probabilities, outcomes, strict=True))
    assert found.brier == pytest.approx(sum((p - y) ** 2 for p, y in pairs) / len(pairs))
    error, counted = 0.0, 0
    for place in range(10):
        inside = [(p, y) for p, y in pairs if min(int(10 * p), 9) == place]
        if inside:
            gap = sum(p for p, _ in inside) / len(inside) - sum(y for _, y in inside) / len(inside)
            error += len(inside) / len(pairs) * abs(gap)
            [one] = [one for one in found.bins if one.least == place / 10]
            assert (one.size, one.most) == (len(inside), (place + 1) / 10)
            assert one.mean - one.share == pytest.approx(gap)
            counted += 1
    assert found.ece == pytest.approx(error)
    assert (len(found.bins), found.size) == (counted, len(pairs))
    assert found.share == pytest.approx(sum(outcomes) / len(pairs))


def test_what_always_comes_true_ranks_nothing() -> None:
    with pytest.raises(ValueError, match="3 outcomes"):
        area_under_curve(np.array([0.1, 0.2, 0.3]), np.ones(3))
