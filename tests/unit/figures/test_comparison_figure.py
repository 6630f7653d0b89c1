"""The figure of a comparison."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from nmtflex.comparison.table import Row
from nmtflex.figures.figures import comparison


def row(name, cps, microseconds, *bleus):
    seeds = [
        {
            "bleu": bleu,
            "cps": cps,
            "significance": [{"metric": "BLEU", "score": bleu, "interval": [bleu - 1, bleu + 1]}],
        }
        for bleu in bleus
    ]
    least, median, most = microseconds
    return Row(name, seeds, {"microseconds": {"least": least, "median": median, "most": most}})


def test_a_point_an_entry_with_its_interval_and_rounds(texts):
    rows = [
        row("global", 8.0, (90, 100, 120), 30.0, 32.0),
        row("none", 0.0, (40, 50, 60), 20.0),
        row("unheard of", None, (70, 80, 90), 25.0),
    ]
    figure = comparison(rows, "test · beam 5")
    quality, time = figure.axes
    points = [bars.lines[0].get_xydata().tolist() for bars in quality.containers]
    assert points == [[[8, 31]], [[0, 20]]]  # what has no CPS is in the other panel alone
    points = [bars.lines[0].get_xydata().tolist() for bars in time.containers]
    assert points == [[[100, 31]], [[50, 20]], [[80, 25]]]
    across, up = time.containers[0].lines[2]
    assert across.get_segments()[0].tolist() == [[90, 31], [120, 31]]
    assert up.get_segments()[0].tolist() == [[100, 30], [100, 32]]
    # The seeds of the only entry that has several.
    alone = [line.get_xydata().tolist() for line in time.lines if len(line.get_xydata()) == 2]
    assert [[100, 30], [100, 32]] in alone
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "global", "none", "unheard of",
    ]  # fmt: skip
    assert quality.get_xlim()[0] < 0 == time.get_xlim()[0]  # room for the marker at 0
    assert "test · beam 5" in texts(figure)


@pytest.mark.parametrize(("first", "scale"), [(10.0, "log"), (0.0, "linear"), (50.0, "linear")])
def test_counts_that_lie_far_apart(first, scale):
    times = (1, 1, 1)
    figure = comparison([row("a", first, times, 1.0), row("b", 100.0, times, 2.0)], "")
    assert figure.axes[0].get_xscale() == scale
    assert figure.axes[1].get_xscale() == "linear"
