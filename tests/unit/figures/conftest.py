"""Figures read back: SVG keeps their text."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from nmtflex.decoding.traces import SentenceTrace

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def texts(tmp_path) -> Callable[..., list[str]]:
    """Save a figure as SVG and return its texts."""
    from nmtflex.figures.figures import save

    def read(figure) -> list[str]:
        path = tmp_path / "figure.svg"
        save(figure, path)
        root = ET.parse(path).getroot()
        return ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]

    return read


@pytest.fixture
def trace() -> Callable[..., SentenceTrace]:
    """Make a trace by hand: ``trace(weights=[[...]], gate=[...])``; the rest is None."""

    def make(**parts: list) -> SentenceTrace:
        steps = len(next(iter(parts.values())))
        found = dict.fromkeys(SentenceTrace._fields) | {"computed": np.full(steps, 2)}
        return SentenceTrace(**found | {name: np.array(part) for name, part in parts.items()})

    return make
