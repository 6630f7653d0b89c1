"""Figures, drawn with matplotlib: the file's ending says in which format."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nmtflex.errors import OptionError
from nmtflex.files import atomic_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nmtflex.analysis.sweep import Point

BLUE, ORANGE = "#0072b2", "#d55e00"  # Okabe and Ito: told apart by the colour-blind


def check_matplotlib() -> None:
    """Check that figures can be drawn.

    Raises:
        OptionError: matplotlib is not installed.
    """
    try:
        import matplotlib as _  # noqa: F401, ICN001
    except ImportError as error:
        raise OptionError(
            "figures need matplotlib; install it with: pip install 'nmtflex[plots]'"
        ) from error


def trade_off(points: Sequence[Point], title: str, chosen: Point | None = None) -> Figure:
    """Draw BLEU against computations a step (Shu and Nakayama, figure 4).

    Args:
        points: Of a sweep.
        title: Run, split and settings.
        chosen: A point to mark.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    ordered = sorted(points, key=lambda point: point.cps)
    axes.plot([point.cps for point in ordered], [point.bleu for point in ordered], "o-", color=BLUE)
    for place, point in enumerate(ordered):
        axes.annotate(
            "no threshold" if point.tau == math.inf else f"τ = {point.tau:.4g}",
            (point.cps, point.bleu),
            xytext=(0, -14 if place % 2 else 8),  # neighbours may stand close together
            textcoords="offset points",
            ha="center",
            fontsize=8,
        )
    if chosen is not None:
        axes.plot(
            [chosen.cps], [chosen.bleu], "o", ms=13, mfc="none", mec=ORANGE, mew=2, label="chosen"
        )
        axes.legend(loc="lower right")
    axes.set_xlabel("score computations a step (CPS)")
    axes.set_ylabel("BLEU")
    axes.set_title(title, fontsize=10)
    axes.margins(x=0.12, y=0.15)
    axes.grid(alpha=0.3)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure whole or not at all."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix.removeprefix("."), dpi=150)
    with atomic_file(path) as file:
        file.write(drawn.getvalue())
