"""BLEU against computations and against time, entry by entry: ``nmtflex compare``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nmtflex.comparison.table import Row
from nmtflex.figures.style import canvas, head, legend, legend_label, line_style, look, scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEW = 8  # times the smallest value, up to which an axis is linear


@look()
def comparison(rows: Sequence[Row], caption: str) -> Figure:
    """Draw a point an entry: BLEU against CPS, and against microseconds a target token.

    A bar is the 95 % interval of BLEU, or the slowest and the fastest round; the small points are
    single seeds. An entry that has no CPS is in the second panel alone.

    Args:
        rows: At least one.
        caption: Split and settings.
    """
    figure = canvas(9.6, 5.0)
    quality, time = figure.subplots(1, 2, sharey=True)
    for number, row in enumerate(rows):
        style = line_style(number)
        cps = row.mean("cps")
        if cps is not None:
            _point(quality, row, cps, None, style)
        _point(time, row, row.speed["microseconds"]["median"], row.speed["microseconds"], style)
    quality.set_xlabel("score computations a step (CPS)")
    quality.set_ylabel("BLEU")
    time.set_xlabel("microseconds a target token")
    counts = [cps for row in rows if (cps := row.mean("cps")) is not None]
    scale(quality, counts, FEW)
    scale(time, [row.speed["microseconds"]["median"] for row in rows], FEW)
    for axes in (quality, time):
        axes.margins(y=0.12)
        axes.grid(alpha=0.3)
        axes.set_axisbelow(True)
    legend(figure, [time])
    head(figure, "BLEU against computations and against time", caption)
    return figure


def _point(
    axes: Axes, row: Row, x: float, rounds: dict[str, Any] | None, style: dict[str, Any]
) -> None:
    """Draw an entry."""
    bleu = row.bleu
    # Filled markers overlap; hollow ones have an edge of their own.
    edge: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.3}
    spread = [[x - rounds["least"]], [rounds["most"] - x]] if rounds else None
    axes.errorbar(
        [x],
        [bleu.mean],
        xerr=spread,
        yerr=bleu.margin,
        label=legend_label(row.name),
        linestyle="none",
        elinewidth=1,
        capsize=2,
        **edge | style | {"markersize": 7},
    )
    if len(row.seeds) > 1:
        each = [one["bleu"] for one in row.seeds]
        axes.plot([x] * len(each), each, ".", color=style["color"], markersize=3, alpha=0.6)
