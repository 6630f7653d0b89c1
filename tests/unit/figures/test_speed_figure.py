"""BLEU against decoding speed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("matplotlib")

from nmtflex.bench.decoding import Clocked, Counts, Measured, Ratio, Times
from nmtflex.figures.figures import speed


def measured(name, tokens, rounds, bleu):
    counts = Counts(9, tokens, None, None, None, bleu)
    clocked = Clocked(Times(rounds), {})
    return Measured(SimpleNamespace(name=name), counts, clocked, Ratio(1, 1, 1), 0)


@pytest.mark.parametrize(("tokens", "scale"), [(300, "linear"), (5000, "log")])
def test_a_point_and_a_bar_for_each_run(tokens, scale):
    runs = [
        measured("slow", 100, [1.0, 2.0, 4.0], 20.0),
        measured("fast", tokens, [2.0, 1.0, 2.0], 30.0),
    ]
    assert runs[0].tokens_per_second == (25, 50, 100)
    figure = speed(runs, "cpu · beam 5")
    (axes,) = figure.axes
    assert axes.get_xscale() == scale
    points = [bars.lines[0].get_xydata().tolist() for bars in axes.containers]
    assert points == [[[50, 20]], [[tokens / 2, 30]]]
    ends = [bars.lines[2][0].get_segments()[0].tolist() for bars in axes.containers]
    assert ends == [[[25, 20], [100, 20]], [[tokens / 2, 30], [tokens, 30]]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["slow", "fast"]
    assert figure.get_supxlabel() == "cpu · beam 5"
