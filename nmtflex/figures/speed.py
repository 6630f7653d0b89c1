"""BLEU against decoding speed, run by run: ``nmtflex bench RUN... --output``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmtflex.bench.decoding import Measured
from nmtflex.figures.style import canvas, head, legend, legend_label, line_style, look, scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW = 4  # times as fast as the slowest, up to which the axis is linear


@look()
def speed(measured: Sequence[Measured], caption: str) -> Figure:
    """Draw a point per run at its median speed, with a bar from the slowest round to the fastest.

    Args:
        measured: Of at least one run.
        caption: Machine, split and settings.
    """
    figure = canvas(5.6, 4.0)
    axes = figure.add_subplot()
    for number, one in enumerate(measured):
        least, median, most = one.tokens_per_second
        axes.errorbar(
            [median],
            [one.counts.bleu],
            xerr=[[median - least], [most - median]],
            label=legend_label(one.subject.name),
            linestyle="none",
            elinewidth=1,
            capsize=2,
            **line_style(number),
        )
    scale(axes, [one.tokens_per_second[1] for one in measured], FEW)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.set_xlabel("target tokens a second")
    axes.set_ylabel("BLEU")
    axes.margins(y=0.15)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    legend(figure, [axes])
    head(figure, "BLEU and decoding speed", caption)
    return figure
