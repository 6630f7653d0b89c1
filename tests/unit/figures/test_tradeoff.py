"""BLEU against computations, from the tables of sweeps."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from nmtflex.errors import DataError, RunError
from nmtflex.evaluation.sweep import Point, as_csv
from nmtflex.figures.tradeoff import find_tables, read_points, table_facts, trade_off, trade_offs

POINTS = [
    Point(0.2, 100 / 3, None, 2.125, 3.0, 100),
    Point(math.inf, 30.25, 0.75, 22.5, 9.0, 100),
]
HEADER = "tau,bleu,ribes,cps,seconds,sentences\n"


def test_a_table_is_read_as_it_was_written(tmp_path):
    (tmp_path / "table.csv").write_text(as_csv(POINTS))
    assert read_points(tmp_path / "table.csv") == POINTS


def test_tables_of_every_version_are_read(tmp_path):
    """With run, split and beam; and with the total of all heads after them."""
    path, row = tmp_path / "table.csv", "0.2,30.5,,2.5,3.0,100"
    path.write_text(f"{HEADER.strip()},run,split,beam\n{row},flex,valid,5\n")
    assert read_points(path) == [Point(0.2, 30.5, None, 2.5, 3.0, 100, None)]
    path.write_text(f"{HEADER.strip()},run,split,beam,cps_total\n{row},flex,valid,5,20.0\n")
    assert read_points(path) == [Point(0.2, 30.5, None, 2.5, 3.0, 100, 20.0)]
    assert table_facts(path, "") == {"run": "flex", "split": "valid", "beam": "beam 5"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"",
            "not a table of nmtflex sweep, which begins with tau,bleu,ribes,cps,seconds,sentences",
        ),
        (b"update,epoch\n", "not a table of nmtflex sweep, which begins with tau"),
        (b"\xff", "not a table of nmtflex sweep: not UTF-8"),
        (HEADER.encode(), "has no points"),
        (f"{HEADER}{'9' * 200_000}\n".encode(), "not a table of nmtflex sweep: field larger"),
        (f"{HEADER}0.2,much,,2,3,100\n".encode(), "could not convert string to float: 'much'"),
        (f"{HEADER}0.2,30,,2,3,100\n1,2\n".encode(), "table.csv:3: not a point of a sweep"),
        (f"{HEADER}0.2,30,,2,3,100,a\n".encode(), "csv:2: not a point of a sweep: 7 columns"),
        (f"{HEADER[:-1]},run\n0.2,30,,2,3,100,a\n".encode(), "not a table of nmtflex sweep, wh"),
    ],
)
def test_other_files_are_named(tmp_path, content, message):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_points(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.csv: No such file"):
        read_points(tmp_path / "none.csv")


def test_runs_stand_for_their_sweeps(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    for name in ("sweep-valid-beam5.csv", "sweep-test-beam5.csv", "metrics.csv"):
        (run / name).touch()
    other = Path("other.csv")
    expected = [run / "sweep-test-beam5.csv", run / "sweep-valid-beam5.csv", other]
    assert find_tables([run, other]) == expected


def test_a_run_without_sweep(tmp_path):
    with pytest.raises(RunError) as caught:
        find_tables([tmp_path])
    message = f"{tmp_path} has no sweep-*.csv; make one with: nmtflex sweep {tmp_path}"
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sweep-valid-beam20.csv", ["flex", "valid", "beam 20"]),
        ("sweep-a-b-beam5.csv", ["flex", "a-b", "beam 5"]),
        ("mine.csv", ["mine", "", ""]),
        ("sweep-valid.csv", ["sweep-valid", "", ""]),
    ],
)
def test_the_name_of_a_table_says_what_it_is_of(tmp_path, name, expected):
    (tmp_path / name).write_text(as_csv(POINTS))
    assert list(table_facts(tmp_path / name, "flex").values()) == expected


def test_a_table_says_what_it_is_of(tmp_path):
    for name in ("mine.csv", "sweep-test-beam5.csv"):
        (tmp_path / name).write_text(as_csv(POINTS, ("a, b\u2028", "valid", 4)))
        assert read_points(tmp_path / name) == POINTS
        facts = table_facts(tmp_path / name, "folder")
        assert facts == {"run": "a, b\u2028", "split": "valid", "beam": "beam 4"}


def test_a_table_in_a_run_goes_by_the_name_of_the_run(tmp_path):
    (tmp_path / "config.json").touch()
    (tmp_path / "sweep-valid-beam4.csv").write_text(as_csv(POINTS, ("before", "valid", 4)))
    facts = table_facts(tmp_path / "sweep-valid-beam4.csv", "now")
    assert facts == {"run": "now", "split": "valid", "beam": "beam 4"}


def test_a_curve_a_table(texts):
    valid = [point._replace(bleu=point.bleu - 1) for point in POINTS]
    figure = trade_offs([("valid", valid[::-1]), ("test", POINTS)], "flex · beam 5")
    [axes] = figure.axes
    lines = {
        line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines
    }
    cps = [2.125, 22.5]
    assert lines == {"valid": (cps, [100 / 3 - 1, 29.25]), "test": (cps, [100 / 3, 30.25])}
    assert len({line.get_color() for line in axes.lines}) == 2
    assert len({line.get_marker() for line in axes.lines}) == 2
    found = texts(figure)
    for text in (
        "BLEU against computations, by threshold",
        "score computations a step (CPS)",
        "BLEU",
    ):
        assert text in found
    assert found.count("τ = 0.2") == found.count("no threshold") == 2
    assert {"valid", "test", "flex · beam 5"} <= set(found)


def test_one_curve_needs_no_legend(texts):
    figure = trade_offs([("flex", POINTS)], "flex · test · beam 5")
    assert not figure.legends
    assert "flex · test · beam 5" in texts(figure)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("curves", [1, 2, 3, 4])
@pytest.mark.parametrize("rise", [0.0, 0.5])  # BLEU is 0 everywhere after too short a training
def test_labels_cover_neither_each_other_nor_a_point(curves, rise):
    taus = [0.05, 0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 1, 1.38, 2, math.inf]
    many = [
        (f"run{curve}", [
            Point(tau, rise * (number**0.5 + curve / 4), None, 4 + number + curve / 3, 1.0, 9)
            for number, tau in enumerate(taus)
        ])
        for curve in range(curves)
    ]  # fmt: skip
    figure = trade_offs(many, "test · beam 5")
    figure.draw_without_rendering()
    [axes] = figure.axes
    boxes = [label.get_window_extent() for label in axes.texts]
    assert len(boxes) > len(taus) / 2  # what finds no place is left out
    for number, box in enumerate(boxes):
        assert box.count_overlaps(boxes[:number]) == 0
        for line in axes.lines:
            points = axes.transData.transform(line.get_xydata())
            assert not any(box.contains(x, y) for x, y in points)
    assert {"τ = 0.05", "no threshold"} <= {label.get_text() for label in axes.texts}


@pytest.mark.parametrize("bleu", [[5.56, 5.66], [0.0, 0.1], [0.3, 0.4], [0.0, 0.0], [30.2, 33.1]])
def test_the_axis_is_a_bleu_high_or_more(bleu):
    points = [Point(tau, value, None, 9 * tau, 1.0, 9) for tau, value in enumerate(bleu, start=1)]
    for figure in (trade_off(points, "test"), trade_offs([("run", points)], "test")):
        low, high = figure.axes[0].get_ylim()
        assert high - low == pytest.approx(max(1, (bleu[1] - bleu[0]) * 1.24))
        assert low < min(bleu) or low == 0
        assert max(bleu) < high


@pytest.mark.parametrize(("most", "kind"), [(30.0, "linear"), (400.0, "log")])
def test_the_axis_of_long_sources_is_logarithmic(most, kind):
    """Between 2 and 400 computations all thresholds would lie on one another."""
    taus = [(0.5, 2.0), (1.0, 5.0), (math.inf, most)]
    points = [Point(tau, 30.0, None, cps, 1.0, 9) for tau, cps in taus]
    for figure in (trade_off(points, "test"), trade_offs([("run", points)], "test")):
        assert figure.axes[0].get_xscale() == kind
