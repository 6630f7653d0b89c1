"""Gate, focus and window by step."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from nmtflex.figures.sentence import Looked
from nmtflex.figures.steps import focus, gate

SOURCE, TARGET = ["der", "Bär", "läuft", "."], ["熊", "が", "</s>"]


def test_the_gate_is_a_bar_a_step(trace, texts):
    values = np.array([0.25, 1.0, 0.5])
    figure = gate(Looked(SOURCE, TARGET, trace(gate=values)), values, "run · beam 5")
    [axes] = figure.axes
    assert [bar.get_height() for bar in axes.patches] == [0.25, 1.0, 0.5]
    assert axes.get_ylim() == (0, 1)
    found = texts(figure)
    assert [text for text in found if text in TARGET] == TARGET
    for text in (
        "Gate of flexible attention by step",
        "gate g (0 open, 1 strict)",
        "target (tokens)",
    ):
        assert text in found
    assert "run · beam 5 · mean gate 0.583" in " ".join(found)


def test_windows_and_focus_lie_over_the_source(trace, texts):
    made = trace(focus=[0.5, 2.75, 3.0], window_start=[0, 1, 3], window_stop=[4, 4, 4])
    looked = Looked(SOURCE, TARGET, made, dots="the centre of the window")
    figure = focus(looked, made.focus, "run")
    [axes] = figure.axes
    spans = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches]
    assert spans == [(-0.5, 3.5), (0.5, 3.5), (2.5, 3.5)]  # whole cells of the positions computed
    [line] = axes.lines
    assert list(line.get_xdata()) == [0.5, 2.75, 3.0]
    assert list(line.get_ydata()) == [0, 1, 2]
    assert axes.get_xlim() == (-0.5, 3.5)
    assert axes.get_ylim() == (2.5, -0.5)
    found = texts(figure)
    assert [text for text in found if text in SOURCE + TARGET] == SOURCE + TARGET
    for text in ("Focus and computed window by step", "source (tokens)", "target (tokens)"):
        assert text in found
    assert "focus, the centre of the window" in " ".join(found)


def test_a_focus_without_window_is_a_mistake_of_the_caller(trace):
    made = trace(focus=[0.5])
    with pytest.raises(ValueError, match=r"\['x'\] has a focus, but no window"):
        focus(Looked(SOURCE, ["x"], made), made.focus, "run")
