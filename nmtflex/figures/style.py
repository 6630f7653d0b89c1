"""How figures look: colours, sizes, head and caption."""

from __future__ import annotations

import contextlib
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from nmtflex.figures.fonts import FAMILIES, GENERIC, register_fonts
from nmtflex.text.visible import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito, "Color Universal Design" (2008): safe for colour-blind readers. Yellow is
# left out: it is too light for a line on white.
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"
PINK, AMBER, SKY, BLACK = "#cc79a7", "#e69f00", "#56b4e9", "#000000"
COLOURS = (BLUE, ORANGE, GREEN, PINK, AMBER, SKY, BLACK)
MARKERS = "osD^vPX*"  # with seven colours, 56 different lines
GREY, PALE = "#555555", "#dddddd"

TEXT = 9.0  # points
LEFT = 0.03  # of the largest value: room for the marker of a zero
CELL = 0.27  # inches a token along an axis
LONGEST_SIDE = 40.0  # inches; beyond it cells and labels shrink
LONGEST_LABEL = 28  # characters of a token
KEPT = "\u00a0"  # a space at which a caption is not broken


@contextlib.contextmanager
def look() -> Iterator[None]:
    """Draw or save in the common style; used as a decorator."""
    import matplotlib as mpl

    register_fonts()
    settings: dict[Any, Any] = {
        "font.family": [*FAMILIES, GENERIC],
        "font.sans-serif": [FAMILIES[0]],
        "font.size": TEXT,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.labelsize": TEXT,
        "legend.fontsize": TEXT - 1,
        "legend.frameon": False,
        "text.parse_math": False,  # "$" is a token like any other
        "svg.fonttype": "none",  # text stays text
        "pdf.fonttype": 42,
    }
    with mpl.rc_context(settings):
        yield


def canvas(width: float, height: float) -> Figure:
    """Return an empty figure; sizes in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def head(figure: Figure, title: str, caption: str) -> None:
    """Write the title above a figure, and run, split and settings below it."""
    above = textwrap.fill(title, max(24, int(10.5 * figure.get_figwidth())))
    figure.suptitle(above, fontsize=TEXT + 3, x=0.01, ha="left")
    facts = [
        fact.replace(" ", KEPT) if len(fact) <= LONGEST_LABEL else fact
        for fact in visible(caption).split(" · ")
    ]
    width = max(30, int(15 * figure.get_figwidth()))
    lines = textwrap.wrap(f"{KEPT}· ".join(facts), width, break_long_words=False)
    text = "\n".join(lines).replace(KEPT, " ")
    figure.supxlabel(text, fontsize=TEXT - 1, color=GREY, x=0.01, ha="left")


def line_style(number: int) -> dict[str, Any]:
    """Return colour and marker of the n-th of several lines, counted from 0.

    Where colours come again, markers are hollow, then filled, in turns.
    """
    colour = COLOURS[number % len(COLOURS)]
    style = {"color": colour, "marker": MARKERS[number % len(MARKERS)], "markersize": 4.5}
    if number // len(COLOURS) % 2:
        style |= {"markerfacecolor": "white", "markeredgecolor": colour, "markeredgewidth": 1.2}
    return style


def legend_label(text: str) -> str:
    """Return a legend label: matplotlib hides those that begin with an underscore."""
    text = visible(text)
    return f" {text}" if text.startswith("_") else text


def legend(figure: Figure, panels: Iterable[Axes]) -> None:
    """Add a legend to the right that names the lines of all panels, each once."""
    named: dict[str, Any] = {}
    for axes in panels:
        for handle, text in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(text, handle)
    names = [text if len(text) <= LONGEST_LABEL else text.replace(", ", ",\n") for text in named]
    lines = [line for several in names for line in several.split("\n")]
    width, height = figure.get_size_inches()
    figure.set_size_inches(
        width + 0.5 + max(map(inches, lines), default=0.0), max(height, 0.7 + 0.2 * len(lines))
    )
    figure.legend(list(named.values()), names, loc="outside right upper")


def scale(axes: Axes, values: Sequence[float], few: float) -> None:
    """Let the x axis begin at 0, or be logarithmic if values lie far apart and none is 0.

    Args:
        axes: The panel.
        values: What it shows, none of them negative.
        few: Times the smallest value, up to which the axis is linear.
    """
    if values and min(values) > 0 and max(values) > few * min(values):
        logarithmic(axes, "x")
    else:
        axes.set_xlim(left=-LEFT * max(values, default=1) if 0 in values else 0)


def logarithmic(axes: Axes, axis: Literal["x", "y"]) -> None:
    """Make an axis logarithmic, with plain numbers at 1, 2 and 5 times the powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set(**{f"{axis}scale": "log"})
    drawn = axes.xaxis if axis == "x" else axes.yaxis
    drawn.set_major_locator(LogLocator(subs=(1, 2, 5)))
    drawn.set_major_formatter("{x:,g}")
    drawn.set_minor_formatter(NullFormatter())  # matplotlib labels them where powers are few


def side(count: int, least: float = 0.0) -> float:
    """Return the inches of ``count`` tokens along an axis."""
    return min(LONGEST_SIDE, max(least, CELL * count))


def put_tokens(axes: Axes, axis: Literal["x", "y"], tokens: Sequence[str], length: float) -> None:
    """Label the places 0, 1, ... of an axis, ``length`` inches long, with tokens.

    Along x, labels that do not fit side by side are rotated.
    """
    cell = 72 * length / max(1, len(tokens))  # points
    size = min(TEXT, 0.8 * cell)
    labels = [label(token) for token in tokens]
    drawn = axes.xaxis if axis == "x" else axes.yaxis
    drawn.set_ticks(range(len(tokens)), labels, fontsize=size)
    drawn.set_tick_params(length=0, pad=3)
    if axis == "x" and any(ems(text) * size > 0.9 * cell for text in labels):
        drawn.set_tick_params(rotation=90)


def label(token: str) -> str:
    """Return a token for an axis: spaces made visible, long tokens shortened."""
    text = visible(token)
    if text.isspace():
        return "␣" * len(text)
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"


def ems(text: str) -> float:
    """Estimate a text's width in units of its font size."""
    return sum(1.0 if unicodedata.east_asian_width(one) in "WF" else 0.62 for one in text)


def inches(text: str) -> float:
    """Estimate the width of a line of text."""
    return ems(text) * TEXT / 72


def longest(tokens: Sequence[str]) -> float:
    """Estimate the inches of the longest token label."""
    return max((inches(label(token)) for token in tokens), default=0.0)


def tell_apart(facts: Sequence[dict[str, str]]) -> tuple[list[str], str]:
    """Separate the facts that all lines of a figure share, for the caption, from each line's own.

    Args:
        facts: Facts of each line, with the same names in the same order: run, split, beam.

    Returns:
        A label a line (its first fact if all facts are shared), and the shared facts.
    """
    alike = [name for name in facts[0] if all(a[name] == b[name] for a, b in pairwise(facts))]
    shared = [facts[0][name] for name in alike if facts[0][name]]
    labels = [
        ", ".join(text for name, text in fact.items() if name not in alike and text)
        or next(iter(fact.values()))
        for fact in facts
    ]
    return labels, " · ".join(shared)
