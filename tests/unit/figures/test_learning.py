"""Learning curves: what is drawn of metrics.csv."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib")

from nmtflex.config import plot
from nmtflex.errors import OptionError, RunError
from nmtflex.figures.learning import METRICS, learning, points, present
from nmtflex.runs.metrics import NUMBERS, MetricsRow
from nmtflex.training.metrics import COLUMNS

ROWS = [
    MetricsRow(50, 30.5, "train", {"loss": 5.5, "perplexity": 240.0}),
    MetricsRow(100, 60.0, "train", {"loss": 4.0, "perplexity": 55.0, "gate_mean": 0.5}),
    MetricsRow(
        100,
        90.0,
        "valid",
        {"loss": 3.5, "perplexity": 33.0, "bleu": 12.5, "gate_mean": 0.25, "cps": 8.75},
    ),
    MetricsRow(
        200,
        180.0,
        "valid",
        {"loss": 2.5, "perplexity": 12.0, "bleu": 20.25, "gate_mean": 0.75, "cps": 6.5},
    ),
]


def test_the_names_of_the_option_are_those_that_can_be_drawn():
    assert tuple(METRICS) == plot.METRICS
    assert {column for column, _ in METRICS.values()} == set(NUMBERS)
    assert set(NUMBERS) <= set(COLUMNS)


@pytest.mark.parametrize(
    ("metric", "split", "by_time", "expected"),
    [
        ("loss", "train", False, ([50, 100], [5.5, 4.0])),
        ("loss", "train", True, ([30.5, 60.0], [5.5, 4.0])),
        ("bleu", "valid", False, ([100, 200], [12.5, 20.25])),
        ("gate", "train", True, ([60.0], [0.5])),
        ("cps", "valid", False, ([100, 200], [8.75, 6.5])),
        ("bleu", "train", False, ([], [])),
    ],
)
def test_where_a_curve_goes(metric, split, by_time, expected):
    assert points(ROWS, metric, split, by_time) == expected


def test_the_usual_metrics_are_those_that_some_run_has():
    trained = [MetricsRow(1, 1.0, "train", {"loss": 2.0, "perplexity": 7.4})]
    validated = [*trained, MetricsRow(1, 2.0, "valid", {"bleu": 3.0})]
    assert present([("a", trained)], None) == ["loss", "perplexity"]
    assert present([("a", trained), ("b", validated)], None) == ["loss", "perplexity", "bleu"]
    assert present([("b", validated)], ["bleu"]) == ["bleu"]


def test_a_metric_that_a_run_has_not():
    rows = [MetricsRow(1, 1.0, "train", {"loss": 2.0})]
    with pytest.raises(OptionError, match="--y gate: the metrics of runs/b have no gate"):
        present([("runs/b", rows)], ["loss", "gate"])
    with pytest.raises(RunError, match="metrics of runs/c have no loss, perplexity, bleu"):
        present([("runs/c", [MetricsRow(1, 1.0, "train", {})])], None)


def drawn(axes) -> dict[str, tuple[list[float], list[float]]]:
    return {
        line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines
    }


def test_a_panel_a_metric_and_a_line_a_run(texts):
    other = [MetricsRow(100, 60.0, "valid", {"loss": 1.5, "bleu": 30.0})]
    figure = learning([("a", ROWS), ("b", other)], ["loss", "bleu"], False, "valid · beam 5")
    loss, bleu = figure.axes
    lines = drawn(loss)
    assert lines["a"] == ([100, 200], [3.5, 2.5])
    assert lines["b"] == ([100], [1.5])
    [train] = [line for name, line in lines.items() if name.startswith("_")]
    assert train == ([50, 100], [5.5, 4.0])
    assert drawn(bleu) == {"a": ([100, 200], [12.5, 20.25]), "b": ([100], [30.0])}
    found = texts(figure)
    title = "Learning curves: loss and BLEU by updates"
    for text in (title, "loss (nats a target token)", "BLEU (0 to 100)", "a", "b"):
        assert text in found
    assert found.count("updates") == 2
    assert "valid · beam 5" in found


@pytest.mark.parametrize(
    ("seconds", "unit", "places"),
    [(180.0, "minutes", [1.5, 3.0]), (10_801.0, "hours", [0.025, 10_801 / 3600])],
)
def test_time_is_told_in_a_unit_that_fits(texts, seconds, unit, places):
    rows = [
        MetricsRow(place, at, "valid", {"bleu": 1.0}) for place, at in enumerate((90.0, seconds))
    ]
    figure = learning([("a", rows)], ["bleu"], True, "")
    assert drawn(figure.axes[0])["a"][0] == pytest.approx(places)
    assert f"time of training and validation ({unit})" in texts(figure)


def test_steep_perplexities_get_plain_powers(texts):
    rows = [
        MetricsRow(n, 1.0, "valid", {"perplexity": value}) for n, value in enumerate((250.0, 4.0))
    ]
    figure = learning([("a", rows)], ["perplexity"], False, "")
    assert figure.axes[0].get_yscale() == "log"
    found = texts(figure)
    assert {"5", "10", "20", "50", "100", "200"} <= set(found)
    assert not [text for text in found if "mathdefault" in text]


def test_a_run_that_was_never_validated_is_named_all_the_same(texts):
    rows = [MetricsRow(n, 1.0, "train", {"loss": 3.0 - n}) for n in range(3)]
    runs = [("only training", rows), ("another", rows)]
    assert "only training" in texts(learning(runs, ["loss"], False, ""))


def test_one_run_has_no_legend_since_the_caption_names_it(texts):
    rows = [MetricsRow(n, 1.0, "train", {"loss": 3.0 - n}) for n in range(3)]
    figure = learning([("alone", rows)], ["loss"], True, "alone · valid")
    assert not figure.legends
    assert "alone · valid" in texts(figure)
    assert "Learning curves: loss by time" in texts(figure)
