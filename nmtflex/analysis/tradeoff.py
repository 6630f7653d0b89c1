"""BLEU against computations a step, from the tables that ``nmtflex sweep`` writes."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmtflex.analysis.style import (
    BLUE,
    ORANGE,
    TEXT,
    canvas,
    head,
    legend,
    legend_label,
    line_style,
    look,
)
from nmtflex.analysis.sweep import COLUMNS, Point
from nmtflex.errors import DataError, RunError
from nmtflex.text.visible import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAME = re.compile(r"sweep-(?P<split>.+)-beam(?P<beam>\d+)")


def find_tables(paths: Sequence[Path]) -> list[Path]:
    """Return the CSV files among some paths, and those of sweeps in the run folders among them.

    Raises:
        RunError: A folder has none.
    """
    found = []
    for path in paths:
        inside = sorted(path.glob("sweep-*.csv")) if path.is_dir() else [path]
        if not inside:
            raise RunError(f"{path} has no sweep-*.csv; make one with: nmtflex sweep {path}")
        found += inside
    return found


def read_points(path: Path) -> list[Point]:
    """Read a table of ``nmtflex sweep``.

    Raises:
        DataError: It is none, or it has no points.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not a table of nmtflex sweep: not UTF-8") from error
    if not lines or lines[0].split(",") != list(COLUMNS):
        raise DataError(f"{path}: not a table of nmtflex sweep, which begins {','.join(COLUMNS)}")
    try:
        rows = list(csv.reader(lines[1:]))
    except csv.Error as error:
        raise DataError(f"{path}: not a table of nmtflex sweep: {error}") from error
    found = []
    for number, row in enumerate(rows, start=2):
        try:
            tau, bleu, ribes, cps, seconds, sentences = row
            numbers = float(bleu), float(ribes) if ribes else None, float(cps), float(seconds)
            found.append(Point(float(tau), *numbers, int(sentences)))
        except ValueError as error:
            raise DataError(f"{path}:{number}: not a point of a sweep: {error}") from error
    if not found:
        raise DataError(f"{path} has no points")
    return found


def table_facts(path: Path, run: str) -> dict[str, str]:
    """Return what a table's name says: split and beam where ``sweep`` chose it.

    Args:
        path: Of the table.
        run: Name of the folder that it lies in.
    """
    named = _NAME.fullmatch(path.stem)
    if named is None:
        return {"run": path.stem, "split": "", "beam": ""}
    return {"run": run, "split": named["split"], "beam": f"beam {named['beam']}"}


@look()
def trade_off(points: Sequence[Point], title: str, chosen: Point | None = None) -> Figure:
    """Draw BLEU against computations a step (Shu and Nakayama, figure 4).

    Args:
        points: Of a sweep.
        title: Run, split and settings.
        chosen: A point to mark.
    """
    figure = canvas(6.4, 4.2)
    axes = figure.add_subplot()
    _curve(axes, points, {"color": BLUE, "marker": "o"})
    if chosen is not None:
        mark: dict[str, Any] = {"ms": 13, "mfc": "none", "mec": ORANGE, "mew": 2}
        axes.plot([chosen.cps], [chosen.bleu], "o", label="chosen", **mark)
        axes.legend(loc="lower right")
    axes.set_title(visible(title), fontsize=TEXT + 1)
    return figure


@look()
def trade_offs(curves: Sequence[tuple[str, Sequence[Point]]], caption: str) -> Figure:
    """Draw several sweeps, as of validation and test data (Japanese paper, figure 2).

    Args:
        curves: Name and points of each sweep.
        caption: What the sweeps share: run, split and settings.
    """
    figure = canvas(6.4, 4.4)
    axes = figure.add_subplot()
    for number, (name, points) in enumerate(curves):
        _curve(axes, points, line_style(number), legend_label(name), below=number % 2 == 1)
    if len(curves) > 1:
        legend(figure, [axes])
    head(figure, "BLEU against computations", caption)
    return figure


def _curve(
    axes: Axes,
    points: Sequence[Point],
    style: dict[str, Any],
    name: str = "",
    below: bool = False,
) -> None:
    """Draw the points of a sweep, each with its threshold, beside a curve that rises."""
    ordered = sorted(points, key=lambda point: point.cps)
    axes.plot([one.cps for one in ordered], [one.bleu for one in ordered], label=name, **style)
    for point in ordered:
        axes.annotate(
            "no threshold" if point.tau == math.inf else f"τ = {point.tau:.4g}",
            (point.cps, point.bleu),
            xytext=(4, -11) if below else (-4, 5),
            textcoords="offset points",
            ha="left" if below else "right",
            fontsize=TEXT - 1,
            color=style["color"],
            zorder=1,  # under the points of another curve
        )
    axes.set_xlabel("score computations a step (CPS)")
    axes.set_ylabel("BLEU")
    axes.margins(x=0.15, y=0.12)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
