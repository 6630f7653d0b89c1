"""What attention does step by step: the gate, the focus and the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nmtflex.decoding.traces import Numbers
from nmtflex.figures.heatmaps import SOURCE, TARGET, on_top
from nmtflex.figures.sentence import Looked
from nmtflex.figures.style import BLUE, ORANGE, SKY, canvas, head, longest, look, put_tokens, side

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@look()
def gate(looked: Looked, gate: Numbers, caption: str) -> Figure:
    """Draw the gate at each step (Shu and Nakayama, figure 5).

    Args:
        looked: The sentence.
        gate: [T].
        caption: Run, split and settings.
    """
    wide = side(len(gate), 3.5)
    figure = canvas(wide + 0.8, longest(looked.target) + 3.0)
    axes = figure.subplots()
    axes.bar(range(len(gate)), gate, color=BLUE, width=0.75)
    axes.set_xlim(-0.6, len(gate) - 0.4)
    axes.set_ylim(0, 1)
    axes.set_ylabel("gate g (0 open, 1 strict)")
    put_tokens(axes, "x", looked.target, wide)
    axes.set_xlabel(TARGET)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    head(figure, "Gate of flexible attention by step", f"{caption} · mean gate {gate.mean():.3f}")
    return figure


@look()
def focus(looked: Looked, focus: Numbers, caption: str) -> Figure:
    """Draw at each step the focus and the window over the source (Japanese paper, figure 1b).

    Args:
        looked: The sentence; its trace has windows, and ``dots`` says what its focus is.
        focus: [T], source positions from 0.
        caption: Run, split and settings.
    """
    start, stop = looked.trace.window_start, looked.trace.window_stop
    if start is None or stop is None:
        raise ValueError(f"the trace of {looked.target} has a focus, but no window")
    rows = range(len(focus))
    wide, high = side(len(looked.source), 3.5), side(len(looked.target), 1.5)
    figure = canvas(wide + longest(looked.target) + 0.8, high + longest(looked.source) + 1.5)
    axes = figure.subplots()
    axes.barh(rows, stop - start, left=start - 0.5, height=0.8, color=SKY, alpha=0.6)
    axes.plot(focus, rows, "o-", color=ORANGE, ms=4, lw=1)
    axes.set_xlim(-0.5, len(looked.source) - 0.5)
    axes.set_ylim(len(focus) - 0.5, -0.5)
    put_tokens(axes, "x", looked.source, wide)
    put_tokens(axes, "y", looked.target, high)
    on_top(axes)
    axes.set_xlabel(SOURCE)
    axes.set_ylabel(TARGET)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    what = f"bars: positions computed; dots: focus, {looked.dots}"
    head(figure, "Focus and computed window by step", f"{caption} · {what}")
    return figure
