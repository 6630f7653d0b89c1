"""Weights as heatmaps: source by target, and memory slots between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nmtflex.decoding.traces import Numbers
from nmtflex.figures.sentence import Looked
from nmtflex.figures.style import BLUE, CELL, PALE, canvas, head, longest, look, put_tokens, side

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

COLOUR_MAP = "viridis"  # even in lightness, and safe for colour-blind readers
SOURCE, TARGET = "source (tokens)", "target (tokens)"
SLOT_SIDE = 4.0  # maximum inches of a memory's slots
LEGEND = """α, to the left: what of each
source position fills slot k

β, below: what of slot k
each step reads

between them, Σ α β: what each
step sees of each position"""


@look()
def attention(looked: Looked, weights: Numbers, caption: str) -> Figure:
    """Draw the weights of each step over the source, and beside them the gate if there is one.

    Args:
        looked: The sentence; positions outside its windows are grey.
        weights: [T, S].
        caption: Run, split and settings.
    """
    gate = looked.trace.gate
    wide, high = side(len(looked.source), 2.5), side(len(looked.target), 1.5)
    widths = [wide] if gate is None else [wide, 1.2]
    figure = canvas(sum(widths) + longest(looked.target) + 1.6, high + longest(looked.source) + 1.3)
    panels = figure.subplots(1, len(widths), width_ratios=widths, squeeze=False)[0]
    shown = np.ma.masked_where(
        np.zeros_like(weights, bool) if looked.outside is None else looked.outside, weights
    )
    image = _cells(panels[0], shown)
    put_tokens(panels[0], "x", looked.source, wide)
    put_tokens(panels[0], "y", looked.target, high)
    on_top(panels[0])
    panels[0].set_xlabel(SOURCE)
    panels[0].set_ylabel(TARGET)
    unit = "Σ α β over the slots" if looked.slots else "0 to 1"
    if weights.min() < 0:  # random features
        unit = "negative ones as 0"
    _colour_bar(image, wide, f"attention weight ({unit})")
    if gate is not None:
        _gate_beside(panels[1], gate)
    note = " · grey: not computed" if np.ma.is_masked(shown) else ""
    head(figure, "Attention weights of each target token", f"{caption}{note}")
    return figure


def _cells(axes: Axes, values: Numbers) -> AxesImage:
    """Draw a matrix, with its first row on top and masked cells grey."""
    axes.set_facecolor(PALE)
    top = max(float(values.max()), 1e-9)
    axes.spines[:].set_visible(False)
    return axes.imshow(
        values, cmap=COLOUR_MAP, vmin=0, vmax=top, aspect="auto", interpolation="nearest"
    )


def _colour_bar(image: AxesImage, inches: float, label: str) -> None:
    """Add a colour bar beside the axes of a matrix, which are ``inches`` wide."""
    axes = image.axes
    bar = axes.inset_axes((1 + 0.1 / inches, 0, 0.12 / inches, 1))
    axes.figure.colorbar(image, cax=bar, label=label)


def on_top(axes: Axes) -> None:
    """Put the x labels above the axes."""
    axes.xaxis.set_ticks_position("top")
    axes.xaxis.set_label_position("top")
    axes.xaxis.labelpad = 7
    axes.xaxis.set_tick_params(length=0)


def _gate_beside(axes: Axes, gate: Numbers) -> None:
    """Draw one bar a step, aligned with the rows of the matrix to the left."""
    axes.barh(range(len(gate)), gate, color=BLUE, height=0.7)
    axes.set_ylim(len(gate) - 0.5, -0.5)
    axes.set_yticks([])
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.5, 1], ["0", ".5", "1"])
    on_top(axes)
    axes.set_xlabel("gate g\n(0 open, 1 strict)")


@look()
def memory(looked: Looked, alpha: Numbers, beta: Numbers, caption: str) -> Figure:
    """Draw what filled the slots, what each step read from them, and the product.

    Britz, Guan and Luong (2017), figures 6-8. The panels lie as in a matrix product: beta [T, K] to
    the right of the product [T, S], alpha [S, K] transposed above it.

    Args:
        looked: The sentence.
        alpha: [S, K], weights of the slots at each source position.
        beta: [T, K], weights of the slots at each step.
        caption: Run, split and settings.
    """
    slots = alpha.shape[1]
    wide, slot_side = side(len(looked.source), 3.0), min(SLOT_SIDE, max(1.2, CELL * slots / 2))
    high = side(len(looked.target), 2.5)
    figure = canvas(
        wide + slot_side + longest(looked.target) + 2.2,
        high + slot_side + longest(looked.source) + 1.6,
    )
    ((above, corner), (product, right)) = figure.subplots(
        2, 2, width_ratios=[wide, slot_side], height_ratios=[slot_side, high]
    )
    corner.axis("off")
    corner.text(0.1, 0.5, LEGEND, va="center")
    images = {
        above: _cells(above, alpha.T),
        product: _cells(product, beta @ alpha.T),
        right: _cells(right, beta),
    }
    names = {above: "α (0 to 1)", product: "Σ α β over the slots", right: "β (0 to 1)"}
    for axes, image in images.items():
        _colour_bar(image, slot_side if axes is right else wide, names[axes])
    put_tokens(above, "x", looked.source, wide)
    on_top(above)
    above.set_xlabel(SOURCE)
    _number_slots(above.yaxis, slots)
    put_tokens(product, "y", looked.target, high)
    product.set_ylabel(TARGET)
    product.set_xticks([])
    _number_slots(right.xaxis, slots)
    right.set_yticks([])
    head(figure, "Memory slots, filled and read", caption)
    return figure


def _number_slots(axis: Axis, slots: int) -> None:
    """Number slots from 1, some of them."""
    step = next(step for step in (1, 2, 4, 8, 16, 32, 64, slots) if slots / step <= 8)
    numbers = [1, *range(step, slots + 1, step)] if step > 1 else range(1, slots + 1)
    axis.set_ticks([number - 1 for number in numbers], [str(number) for number in numbers])
    axis.set_label_text("slot k")
