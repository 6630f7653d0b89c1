"""The position-encoding surface."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from nmtflex.figures.encoding import encoding, surface


def test_the_surface_is_equation_12_with_rows_of_mean_one():
    slots, length = 4, 7
    expected = np.array([
        [
            (1 - k / slots) * (1 - s / length) + (k / slots) * (s / length)
            for k in range(1, slots + 1)
        ]
        for s in range(1, length + 1)
    ])
    expected /= expected.mean(0)
    found = surface(slots, length)
    assert found.shape == (length, slots)
    assert np.allclose(found, expected, rtol=0, atol=1e-12)


def test_both_panels_show_it_with_their_units(texts):
    factors = surface(4, 7)
    figure = encoding(factors, "run · K = 4 slots")
    flat, solid = figure.axes[:2]
    assert np.array_equal(flat.images[0].get_array(), factors)
    assert flat.images[0].get_extent() == [0.5, 4.5, 0.5, 7.5]
    assert solid.get_zlabel() == "factor l"
    found = texts(figure)
    for text in (
        "Position encodings: factor of each slot",
        "slot k",
        "source position s (tokens)",
        "factor l of the slot's logit",
        "run · K = 4 slots",
    ):
        assert text in found


@pytest.mark.parametrize("size", [(1, 1), (1, 5), (3, 1), (64, 200)])
def test_any_size_can_be_drawn(texts, size):
    assert "slot k" in texts(encoding(surface(*size), "run"))
