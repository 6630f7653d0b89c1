"""The best continuations, against a sort of all of them."""

from __future__ import annotations

import numpy as np
import pytest

from nmtflex.ops.beam import extend, leave_out, repeating


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


@pytest.mark.parametrize("form", ["auto", "reference"])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("length", [0, 1, 2, 4, 30])
def test_words_that_repeat_an_ngram_are_left_out(form, size, length, monkeypatch):
    monkeypatch.setenv("NMTFLEX_KERNELS", form)
    draw = np.random.default_rng(size)
    said = draw.integers(0, 3, (7, length))
    proposed = draw.permuted(np.tile(np.arange(5.0), (7, 1)), axis=1)
    values = -np.sort(draw.random((7, 5)), axis=1)
    given = proposed.copy(), values.copy()
    barred = repeating(said, size)
    found, words = leave_out(values, proposed, barred)
    assert (given[0] == proposed).all()
    assert (given[1] == values).all()
    for n, line in enumerate(said.tolist()):
        ngrams = {tuple(line[i : i + size]) for i in range(length - size + 1)}
        last = line[length - size + 1 :] if length >= size - 1 else [-1] * size
        ways = zip(values[n], proposed[n].tolist(), strict=True)
        expected = [(value, word) for value, word in ways if (*last, word) not in ngrams]
        left = len(expected)
        assert list(zip(found[n, :left], words[n, :left].tolist(), strict=True)) == expected
        assert (found[n, left:] == -np.inf).all()
