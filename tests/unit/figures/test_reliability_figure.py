"""The reliability diagram."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from nmtflex.figures.figures import reliability
from nmtflex.scoring.reliability import reliability as scores_of


def test_a_point_for_each_interval_and_the_diagonal():
    scores = scores_of(np.array([0.1, 0.15, 0.95, 0.9, 0.5]), np.array([0, 1, 1, 1, 0]))
    figure = reliability(scores, "run · valid")
    above, below = figure.axes
    diagonal, curve = above.lines
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata()) == [0, 1]
    assert list(curve.get_xdata()) == pytest.approx([0.125, 0.5, 0.925])
    assert list(curve.get_ydata()) == pytest.approx([0.5, 0, 1])
    assert [bar.get_height() for bar in below.patches] == [2, 1, 2]
    assert [bar.get_center()[0] for bar in below.patches] == pytest.approx([0.15, 0.55, 0.95])
    assert f"AUC {scores.auc:.3f}" in figure.get_supxlabel()
    assert "run · valid" in figure.get_supxlabel()
