"""Dropout as one operation; see ``dropout``."""

from __future__ import annotations

from torch import Tensor

from nmtflex.ops.dispatch import implementation


def dropout(x: Tensor, p: float) -> Tensor:
    """Return x / (1 - p) with a random share p of its numbers set to 0, with gradient.

    Args:
        x: Of any shape.
        p: More than 0, less than 1.
    """
    return implementation("dropout", x.device).dropout(x, p)
