"""Learning curves: ``metrics.csv`` of several runs, overlaid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nmtflex.errors import OptionError, RunError
from nmtflex.figures.style import (
    canvas,
    head,
    legend,
    legend_label,
    line_style,
    logarithmic,
    look,
)
from nmtflex.runs.metrics import MetricsRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The metrics that can be drawn: column of metrics.csv, and axis label.
METRICS = {
    "loss": ("loss", "loss (nats a target token)"),
    "perplexity": ("perplexity", "perplexity (a target token)"),
    "bleu": ("bleu", "BLEU (0 to 100)"),
    "gate": ("gate_mean", "mean gate (0 open, 1 strict)"),
    "cps": ("cps", "CPS (score computations a step)"),
}
USUAL = ("loss", "perplexity", "bleu")
STEEP = 20  # ratio of a metric's values; beyond it the axis is logarithmic
LONG = 3 * 3600  # seconds; beyond it time is shown in hours

Named = Sequence[tuple[str, Sequence[MetricsRow]]]  # what runs reported, each with its name


def points(
    rows: Sequence[MetricsRow], metric: str, split: str, by_time: bool
) -> tuple[list[float], list[float]]:
    """Return the points of a curve: updates or seconds, and the values of a metric."""
    column = METRICS[metric][0]
    chosen = [row for row in rows if row.split == split and column in row.values]
    places = [row.seconds if by_time else float(row.update) for row in chosen]
    return places, [row.values[column] for row in chosen]


def present(runs: Named, asked: Sequence[str] | None) -> list[str]:
    """Return the metrics to draw: those requested, or the usual ones that any run has.

    Raises:
        OptionError: A run lacks a requested metric.
        RunError: No run has a usual one.
    """

    def has(rows: Sequence[MetricsRow], metric: str) -> bool:
        return any(METRICS[metric][0] in row.values for row in rows)

    if asked is None:
        found = [name for name in USUAL if any(has(rows, name) for _, rows in runs)]
        if not found:
            raise RunError(f"the metrics of {runs[0][0]} have no {', '.join(USUAL)}")
        return found
    for metric in asked:
        for run, rows in runs:
            if not has(rows, metric):
                raise OptionError(f"--y {metric}: the metrics of {run} have no {metric}")
    return list(asked)


@look()
def learning(runs: Named, metrics: Sequence[str], by_time: bool, caption: str) -> Figure:
    """Draw one panel a metric: a line a run for validation, and a thin one for training.

    Args:
        runs: What each run reported, with its name.
        metrics: Keys of ``METRICS``.
        by_time: Plot over the time of training and validation instead of updates.
        caption: Split and settings.
    """
    figure = canvas(max(4.5, 3.2 * len(metrics)), 3.6)
    panels = figure.subplots(1, len(metrics), squeeze=False, sharex=True)[0]
    longest = max(rows[-1].seconds for _, rows in runs)
    unit, seconds = ("hours", 3600) if longest > LONG else ("minutes", 60)
    for axes, metric in zip(panels, metrics, strict=True):
        for number, (run, rows) in enumerate(runs):
            _draw_run(axes, rows, metric, by_time, seconds, run, number)
        values = [y for line in axes.lines for y in line.get_ydata()]
        if metric == "perplexity" and max(values) > STEEP * min(values):
            logarithmic(axes, "y")
        axes.set_xlabel(f"time of training and validation ({unit})" if by_time else "updates")
        axes.set_ylabel(METRICS[metric][1])
        axes.grid(alpha=0.3)
    if len(runs) > 1:  # the caption names one alone
        legend(figure, panels)
    shown = [name.upper() if name in ("bleu", "cps") else name for name in metrics]
    what = f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]
    head(figure, f"Learning curves: {what} by {'time' if by_time else 'updates'}", caption)
    return figure


def _draw_run(
    axes: Axes,
    rows: Sequence[MetricsRow],
    metric: str,
    by_time: bool,
    seconds: int,
    run: str,
    number: int,
) -> None:
    """Draw the lines of a run in one panel."""
    style, named = line_style(number), False
    for split in ("valid", "train"):
        places, values = points(rows, metric, split, by_time)
        if not values:
            continue
        name: dict[str, Any] = {} if named else {"label": legend_label(run)}
        thin: dict[str, Any] = {"color": style["color"], "lw": 0.8, "alpha": 0.5}
        axes.plot(
            [place / seconds for place in places] if by_time else places,
            values,
            **(style if split == "valid" else thin),
            **name,
        )
        named = True
