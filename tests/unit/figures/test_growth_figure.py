"""Time and memory over the length."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from nmtflex.bench.growth import QUANTITIES, Growth
from nmtflex.figures.figures import growth


def test_a_panel_for_each_quantity_and_a_line_for_each_model():
    lengths = [10, 100]
    measured = [
        Growth("recurrent+luong", mechanism, quantity, lengths, [place + 1.0, place + 2.0], "k d")
        for mechanism in ("global", "memory")
        for place, quantity in enumerate(QUANTITIES)
    ]
    figure = growth(measured, "cpu, 2 threads", "source positions")
    assert [axes.get_title(loc="left") for axes in figure.axes] == [one.name for one in QUANTITIES]
    for place, axes in enumerate(figure.axes):
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        assert axes.get_xlabel() == "source positions"
        first, second, guide = axes.lines
        assert [list(line.get_xdata()) for line in axes.lines] == [lengths] * 3
        assert list(first.get_ydata()) == list(second.get_ydata()) == [place + 1, place + 2]
        assert list(guide.get_ydata()) == [place + 1, 10 * (place + 1)]
    labels = [text.get_text().replace("\n", " ") for text in figure.legends[0].get_texts()]
    assert labels[:2] == ["recurrent+luong, global", "recurrent+luong, memory"]
    assert figure.get_supxlabel() == "cpu, 2 threads"


def test_what_hardly_grows_looks_flat():
    lengths = [10, 100, 1000]
    values = [1000.0, 1002.0, 1004.0]
    figure = growth([Growth("luong", "memory", QUANTITIES[0], lengths, values, "k")], "", "")
    low, high = figure.axes[0].get_ylim()
    assert low < 1000 < 1004 < high
    assert high == pytest.approx(10 * low)
