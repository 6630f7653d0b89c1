"""``nmtflex plot``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nmtflex.cli.app import app
from nmtflex.cli.bind import command, refuse
from nmtflex.cli.console import note
from nmtflex.config import (
    Decoding,
    LengthFigure,
    PlotConfig,
    SearchConfig,
    SentenceFigure,
    ShownConfig,
)
from nmtflex.files import check_writable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@command(app, "plot")
def plot(config: PlotConfig, decoding: Decoding, shown: ShownConfig) -> None:
    """Draw a figure of one or more runs as PNG, SVG or PDF.

    With --sentence or --index: the attention in the translation of one sentence. Otherwise:
    learning curves, BLEU against computations, or BLEU or decoding time by source length.
    """
    _check(config, decoding, shown)
    from nmtflex.figures.figures import check_matplotlib
    from nmtflex.figures.plots import draw

    check_matplotlib()
    name, figure = draw(config.runs, config.kind, decoding, note, shown)
    first = config.runs[0]
    path = config.output or (first if first.is_dir() else first.parent) / f"{name}.png"
    write_figure(figure, path)
    note(f"wrote {path}")


def _check(config: PlotConfig, decoding: Decoding, shown: ShownConfig) -> None:
    """Check first that every option has an effect and that the file can be written."""
    if not config.kind.translates:
        refuse("has no effect: this figure needs no translation", *decoding)
    elif isinstance(config.kind, SentenceFigure):
        refuse("has no effect on one sentence", decoding.batch)
    if isinstance(config.kind, LengthFigure):
        if not decoding.search.replace_unk:
            refuse("has no effect on this figure without --replace-unk", shown)
    else:
        search = decoding.search
        text = SearchConfig(replace_unk=search.replace_unk, unk=search.unk)
        refuse("has no effect: this figure shows the model's own words", text)
        if not (isinstance(config.kind, SentenceFigure) and config.kind.translates):
            refuse("has no effect: this figure shows no attention", shown)
    first = config.runs[0]
    if config.output is not None:
        check_writable(config.output, "--output")
    elif first.is_dir():  # its final name depends on the figure
        check_writable(first / "figure.png", "--output")


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure, and warn about characters drawn as boxes."""
    from nmtflex.figures.figures import save
    from nmtflex.figures.fonts import describe_font

    missing = save(figure, path)
    if missing and path.suffix != ".svg":  # its viewer has its own fonts
        note(
            f"warning: {path}: no installed font has {describe_font(missing)}, drawn as boxes; "
            f"install a font that has them, or write an .svg, whose viewer chooses the font"
        )


def with_ending(base: Path, ending: str) -> Path:
    """Append a suffix to a path whose name may contain a dot."""
    return base.with_name(base.name + ending)
