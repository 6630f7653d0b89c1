"""Figures: what is drawn is read back from the axes; what is written is a file of its kind."""

from __future__ import annotations

import builtins
import math
import re
import sys

import pytest

from nmtflex.errors import OptionError
from nmtflex.evaluation.sweep import Point
from nmtflex.figures.figures import check_matplotlib, save, trade_off

POINTS = [
    Point(math.inf, 30.25, 0.75, 22.5, 9.0, 100),
    Point(0.2, 21.5, 0.625, 2.125, 3.0, 100),
    Point(1.3873898, 30.5, 0.75, 8.75, 5.0, 100),
]


@pytest.fixture
def matplotlib():
    return pytest.importorskip("matplotlib")


def axes_of(figure):
    [axes] = figure.axes
    return axes


def test_the_curve_is_drawn_from_cheap_to_dear(matplotlib):
    axes = axes_of(trade_off(POINTS, "flex-ft, test, beam 5"))
    [curve] = axes.lines
    assert list(curve.get_xdata()) == [2.125, 8.75, 22.5]
    assert list(curve.get_ydata()) == [21.5, 30.5, 30.25]
    figure = axes.figure
    assert figure.get_suptitle() == "BLEU against computations, by threshold"
    assert figure.get_supxlabel() == "flex-ft, test, beam 5"
    assert "CPS" in axes.get_xlabel()
    assert axes.get_ylabel() == "BLEU"
    assert axes.get_legend() is None


def test_each_point_carries_its_threshold(matplotlib):
    axes = axes_of(trade_off(POINTS, "title"))
    labels = {label.xy: label.get_text() for label in axes.texts}
    assert labels == {
        (2.125, 21.5): "τ = 0.2",
        (8.75, 30.5): "τ = 1.387",
        (22.5, 30.25): "no threshold",
    }


def test_the_chosen_point_is_marked(matplotlib):
    axes = axes_of(trade_off(POINTS, "title", POINTS[2]))
    _, mark = axes.lines
    assert (list(mark.get_xdata()), list(mark.get_ydata())) == ([8.75], [30.5])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["chosen"]


@pytest.mark.parametrize("points", [POINTS[:1], [POINTS[0], POINTS[0]._replace(tau=5.0)]])
def test_one_point_and_points_at_one_place_can_be_drawn(matplotlib, tmp_path, points):
    save(trade_off(points, "title", points[0]), tmp_path / "one.png")
    assert (tmp_path / "one.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("a.b.png", rb"\x89PNG\r\n\x1a\n"), ("a.svg", rb"<\?xml[\s\S]*<svg[\s\S]*</svg>\s*$")],
)
def test_the_ending_says_the_format(matplotlib, tmp_path, name, pattern):
    save(trade_off(POINTS, "title"), tmp_path / name)
    assert re.match(pattern, (tmp_path / name).read_bytes())
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_figure_that_cannot_be_drawn_leaves_the_old_file(matplotlib, tmp_path):
    (tmp_path / "old.nope").write_text("precious")
    with pytest.raises(ValueError, match="nope"):
        save(trade_off(POINTS, "title"), tmp_path / "old.nope")
    assert (tmp_path / "old.nope").read_text() == "precious"


def test_drawing_needs_no_display_and_keeps_no_figure(matplotlib):
    """pyplot would hold every figure, and look for a screen."""
    before = "matplotlib.pyplot" in sys.modules
    trade_off(POINTS, "title")
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_without_matplotlib_the_remedy_is_named(monkeypatch):
    true_import = builtins.__import__

    def without(name, *rest, **named):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(f"No module named {name!r}")
        return true_import(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(OptionError, match=r"matplotlib; install it with: pip install matplotlib"):
        check_matplotlib()


def test_with_matplotlib_nothing_is_said(matplotlib):
    assert check_matplotlib() is None
