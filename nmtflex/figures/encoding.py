"""The position encodings of memory attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from nmtflex.attention.memory import position_encoding
from nmtflex.decoding.traces import Numbers
from nmtflex.figures.style import TEXT, canvas, head, look

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def surface(num_slots: int, source_length: int) -> Numbers:
    """Return the factors l [S, K] of the longest source."""
    mask = torch.ones(1, source_length, dtype=torch.bool)
    return position_encoding(mask, num_slots, source_length)[0].numpy()


@look()
def encoding(factors: Numbers, caption: str) -> Figure:
    """Draw position encodings as a surface (Britz, Guan and Luong, figure 2) and from above.

    Args:
        factors: [S, K], which multiply the logits of the slots.
        caption: Run and settings.
    """
    from matplotlib.ticker import MaxNLocator

    positions, slots = factors.shape
    spread = positions > 1 and slots > 1  # otherwise it is a line
    figure = canvas(8.6 if spread else 4.4, 4.2)
    flat = figure.add_subplot(1, 1 + spread, 1 + spread)
    slot, place = np.meshgrid(np.arange(1, slots + 1), np.arange(1, positions + 1))
    edges = (0.5, slots + 0.5, 0.5, positions + 0.5)
    image = flat.imshow(factors, cmap="viridis", aspect="auto", origin="lower", extent=edges)
    if spread:
        solid = figure.add_subplot(1, 2, 1, projection="3d")
        solid.plot_surface(slot, place, factors, cmap="viridis", rcount=60, ccount=60)
        solid.set_xlabel("slot k")
        solid.set_ylabel("source position s")
        solid.set_zlabel("factor l")
        for axis in (solid.xaxis, solid.yaxis, solid.zaxis):  # few, or they overlap
            axis.set_major_locator(MaxNLocator(4, integer=axis is not solid.zaxis))
        solid.tick_params(pad=1, labelsize=TEXT - 1)
        solid.set_box_aspect(None, zoom=0.88)
        solid.view_init(elev=25, azim=-125)
        levels = np.linspace(factors.min(), factors.max(), 10)[1:-1]
        flat.contour(slot, place, factors, levels=levels, colors="white", linewidths=0.6)
    flat.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    flat.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    flat.set_xlabel("slot k")
    flat.set_ylabel("source position s (tokens)")
    figure.colorbar(image, ax=flat, label="factor l of the slot's logit")
    head(figure, "Position encodings: factor of each slot", caption)
    return figure
