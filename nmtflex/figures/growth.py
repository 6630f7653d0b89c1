"""Time and memory over the length: ``nmtflex bench --synthetic``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmtflex.bench.growth import Growth
from nmtflex.figures.style import (
    GREY,
    canvas,
    head,
    legend,
    legend_label,
    line_style,
    logarithmic,
    look,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL = 3.0  # inches
COLUMNS = 3
DECADE = 10.0  # the least ratio of a panel's greatest to its least value


@look()
def growth(measured: Sequence[Growth], caption: str, across: str) -> Figure:
    """Draw a panel per quantity and a line per model, both axes logarithmic.

    Args:
        measured: Quantities of models over lengths.
        caption: Machine and settings.
        across: What the lengths are of.
    """
    names = dict.fromkeys(one.quantity.name for one in measured)
    panels = [[one for one in measured if one.quantity.name == name] for name in names]
    rows = -(-len(panels) // COLUMNS)
    figure = canvas(PANEL * COLUMNS, PANEL * rows)
    grid = figure.subplots(rows, COLUMNS, squeeze=False).flatten()
    for axes, lines in zip(grid, panels, strict=False):
        _panel(axes, lines, across)
    for axes in grid[len(panels) :]:
        axes.remove()
    legend(figure, grid[: len(panels)])
    head(figure, "Time and memory by length", caption)
    return figure


def _panel(axes: Axes, lines: Sequence[Growth], across: str) -> None:
    """Draw one quantity, and what is proportional to the length."""
    from matplotlib.ticker import EngFormatter, NullLocator

    thousands = EngFormatter(sep="")

    for number, one in enumerate(lines):
        label = legend_label(f"{one.backbone}, {one.attention}")
        axes.plot(one.lengths, one.values, **line_style(number), label=label)
    axes.set_xscale("log")
    logarithmic(axes, "y")
    low, high = axes.get_ylim()
    if high < DECADE * low:  # what hardly grows is to look flat
        middle = math.sqrt(low * high)
        axes.set_ylim(middle / math.sqrt(DECADE), middle * math.sqrt(DECADE))
    axes.autoscale(False)  # the guide may leave the panel
    lengths = lines[0].lengths
    lowest = min(line.values[0] for line in lines)
    guide = [lowest * length / lengths[0] for length in lengths]
    axes.plot(lengths, guide, color=GREY, linestyle=":", label="proportional to the length")
    axes.set_xticks(lengths, [f"{length:,}" for length in lengths])
    axes.yaxis.set_major_formatter(lambda y, _: thousands(y) if y >= 1000 else f"{y:g}")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    axes.set_title(lines[0].quantity.name, fontsize="medium", loc="left")
    axes.set_xlabel(across)
    axes.grid(alpha=0.3)
