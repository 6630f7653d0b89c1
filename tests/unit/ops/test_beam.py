"""The best continuations, against a sort of all of them."""

from __future__ import annotations

import numpy as np
import pytest

from nmtflex.ops.beam import extend


def by_sorting(rows, totals, values, words, slots):
    """Sort the continuations of each sentence as the description says."""
    found = []
    for row in sorted(set(rows.tolist())):
        own = [
            (-(totals[n] + values[n, k]), words[n, k], n)
            for n in np.flatnonzero(rows == row)
            for k in range(values.shape[1])
            if values[n, k] > -np.inf
        ]
        found += [(n, word, -cost) for cost, word, n in sorted(own)[: slots[row]]]
    return found


@pytest.mark.parametrize("form", ["auto", "reference"])
@pytest.mark.parametrize("seed", range(40))
def test_the_best_continuations_of_each_sentence(seed, form, monkeypatch):
    monkeypatch.setenv("NMTFLEX_KERNELS", form)
    draw = np.random.default_rng(seed)
    counts = draw.integers(0, 5, 6)  # hypotheses of each sentence, of some none
    rows = np.repeat(np.arange(6), counts)
    width = int(draw.integers(1, 5))
    # Few different numbers, so that many are equal.
    values = -np.sort(draw.integers(0, 4, (len(rows), width)), axis=1).astype(float)
    values[draw.random(values.shape) < 0.1] = -np.inf
    values = -np.sort(-values, axis=1)
    words = draw.permuted(np.tile(np.arange(9.0), (len(rows), 1)), axis=1)[:, :width]
    totals, slots = draw.integers(-3, 1, len(rows)).astype(float), draw.integers(1, 6, 6)
    found = extend(rows, totals, values, words, slots)
    expected = by_sorting(rows, totals, values, words, slots)
    assert list(zip(*(part.tolist() for part in found), strict=True)) == expected
    assert [part.dtype.kind for part in found] == ["i", "i", "f"]
