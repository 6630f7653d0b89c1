"""BLEU against computations a step, from the tables that ``nmtflex sweep`` writes."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nmtflex.errors import DataError, RunError
from nmtflex.evaluation.sweep import COLUMNS, ORIGIN, TOTAL, Point
from nmtflex.figures.style import (
    BLUE,
    ORANGE,
    TEXT,
    canvas,
    head,
    legend,
    legend_label,
    line_style,
    logarithmic,
    look,
)
from nmtflex.runs.folder import RunFolder

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.path import Path as Line
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

TITLE = "BLEU against computations, by threshold"
LEAST_SPAN = 1.0  # BLEU
FEW = 20  # times the fewest computations, up to which their axis is linear
FORMS = (COLUMNS, COLUMNS + ORIGIN, COLUMNS + ORIGIN + TOTAL)  # the first two are older
_NAME = re.compile(r"sweep-(?P<split>.+)-beam(?P<beam>\d+)")

# Where a label may be placed beside its point: points to the right and up, and its alignment.
# A curve rises, so above to the left and below to the right are usually free.
_Place = tuple[tuple[int, int], Literal["left", "center", "right"]]
_ABOVE: _Place = ((-4, 5), "right")
_BELOW: _Place = ((4, -11), "left")
_OTHER: tuple[_Place, ...] = (
    ((4, 5), "left"),
    ((-4, -11), "right"),
    ((0, 8), "center"),
    ((0, -14), "center"),
)


def find_tables(paths: Sequence[Path]) -> list[Path]:
    """Return the CSV files among some paths, and those of sweeps in its run folders.

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
        DataError: It is not such a table, or it has no points.
    """
    header, *rows = _rows(path)
    found = []
    for number, row in enumerate(rows, start=2):
        try:
            tau, bleu, ribes, cps, seconds, sentences = row[: len(COLUMNS)]
            numbers = float(bleu), float(ribes) if ribes else None, float(cps), float(seconds)
            [total] = row[len(COLUMNS + ORIGIN) :] or [""]
            found.append(
                Point(float(tau), *numbers, int(sentences), float(total) if total else None)
            )
        except ValueError as error:
            raise DataError(f"{path}:{number}: not a point of a sweep: {error}") from error
        if len(row) != len(header):
            raise DataError(f"{path}:{number}: not a point of a sweep: {len(row)} columns")
    if not found:
        raise DataError(f"{path} has no points")
    return found


def _rows(path: Path) -> list[list[str]]:
    """Read a table's header and rows; older tables lack the last columns."""
    try:
        text = path.read_text(encoding="utf-8")
        rows = list(csv.reader(io.StringIO(text, newline="")))
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not a table of nmtflex sweep: not UTF-8") from error
    except csv.Error as error:
        raise DataError(f"{path}: not a table of nmtflex sweep: {error}") from error
    if not rows or tuple(rows[0]) not in FORMS:
        raise DataError(
            f"{path}: not a table of nmtflex sweep, which begins with {','.join(COLUMNS)}"
        )
    return rows


def table_facts(path: Path, folder: str) -> dict[str, str]:
    """Return the run, split and beam of a table, as far as its columns or its name say so.

    Args:
        path: The table.
        folder: Name of its folder.
    """
    named = _NAME.fullmatch(path.stem)
    places = slice(len(COLUMNS), len(COLUMNS + ORIGIN))
    origin = next((row[places] for row in _rows(path)[1:]), [])
    # A table in a run folder gets the run's current name.
    if named is not None and (not origin or RunFolder(path.parent).config.exists()):
        return {"run": folder, "split": named["split"], "beam": f"beam {named['beam']}"}
    if len(origin) != len(ORIGIN):
        return {"run": path.stem, "split": "", "beam": ""}
    run, split, beam = origin
    return {"run": run, "split": split, "beam": f"beam {beam}"}


@look()
def trade_off(points: Sequence[Point], caption: str, chosen: Point | None = None) -> Figure:
    """Draw BLEU against computations a step (Shu and Nakayama, figure 4).

    Args:
        points: Points of a sweep.
        caption: Run, split and settings.
        chosen: A point to mark.
    """
    figure = canvas(6.4, 4.2)
    axes = figure.add_subplot()
    _curve(axes, points, {"color": BLUE, "marker": "o"})
    if chosen is not None:
        mark: dict[str, Any] = {"ms": 13, "mfc": "none", "mec": ORANGE, "mew": 2}
        axes.plot([chosen.cps], [chosen.bleu], "o", label="chosen", **mark)
        axes.legend(loc="lower right")
    head(figure, TITLE, caption)
    _scale(axes)
    _label(figure, axes, [points])
    return figure


@look()
def trade_offs(curves: Sequence[tuple[str, Sequence[Point]]], caption: str) -> Figure:
    """Draw several sweeps, such as of validation and test data (Japanese paper, figure 2).

    Args:
        curves: Name and points of each sweep.
        caption: What the sweeps share: run, split and settings.
    """
    figure = canvas(6.4, 4.4)
    axes = figure.add_subplot()
    for number, (name, points) in enumerate(curves):
        _curve(axes, points, line_style(number), legend_label(name))
    if len(curves) > 1:
        legend(figure, [axes])
    head(figure, TITLE, caption)
    _scale(axes)
    _label(figure, axes, [points for _, points in curves])
    return figure


def _curve(axes: Axes, points: Sequence[Point], style: dict[str, Any], name: str = "") -> None:
    """Draw the points of a sweep."""
    ordered = sorted(points, key=lambda point: point.cps)
    axes.plot([one.cps for one in ordered], [one.bleu for one in ordered], label=name, **style)
    axes.set_xlabel("score computations a step (CPS)")
    axes.set_ylabel("BLEU")
    axes.margins(x=0.15, y=0.12)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)


def _scale(axes: Axes) -> None:
    """Show curves of long sources as well, and keep noise from filling the figure."""
    computations = np.concatenate([line.get_xdata() for line in axes.lines])
    if 0 < FEW * computations.min() < computations.max():
        logarithmic(axes, "x")
    low, high = axes.get_ylim()
    if (lack := LEAST_SPAN - (high - low)) > 0:
        low -= min(lack / 2, max(low, 0))
        axes.set_ylim(low, low + LEAST_SPAN)


def _label(figure: Figure, axes: Axes, curves: Sequence[Sequence[Point]]) -> None:
    """Write each point's threshold beside it, unless every place is taken."""
    from matplotlib.transforms import Bbox

    figure.draw_without_rendering()  # now everything has its final place
    lines = [line.get_path().transformed(line.get_transform()) for line in axes.lines]
    markers = [(float(x), float(y)) for line in lines for x, y in np.asarray(line.vertices)]
    taken = [Bbox.from_extents(x - 5, y - 5, x + 5, y + 5) for x, y in markers]
    for number, points in enumerate(curves):
        places = (_BELOW, _ABOVE) if number % 2 else (_ABOVE, _BELOW)
        # The one without a threshold first: the others are compared with it.
        for point in sorted(points, key=lambda point: (point.tau < math.inf, point.cps)):
            text = axes.annotate(
                "no threshold" if point.tau == math.inf else f"τ = {point.tau:.4g}",
                (point.cps, point.bleu),
                xytext=(0, 0),
                textcoords="offset points",
                fontsize=TEXT - 1,
                color=axes.lines[number].get_color(),
                in_layout=False,
            )
            if box := _place(text, (*places, *_OTHER), axes.bbox, taken, lines):
                taken.append(box)
            else:
                text.remove()


def _place(
    text: Annotation, places: Sequence[_Place], within: Bbox, taken: list[Bbox], lines: list[Line]
) -> Bbox | None:
    """Move a text where it covers no other and as few lines as possible; return its box."""
    free = []
    for place in places:
        text.xyann, alignment = place
        text.set_horizontalalignment(alignment)
        box = text.get_window_extent()
        inside = within.containsx(box.x0) and within.containsx(box.x1)
        if inside and not box.count_overlaps(taken):
            crossed = sum(line.intersects_bbox(box, filled=False) for line in lines)
            free.append((crossed, place, box))
    if not free:
        return None
    _, (text.xyann, alignment), box = min(free, key=lambda one: one[0])
    text.set_horizontalalignment(alignment)
    return box
