"""All figures, and how one is written: the file's suffix gives the format."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from nmtflex.errors import OptionError
from nmtflex.figures.comparison import comparison
from nmtflex.figures.encoding import encoding
from nmtflex.figures.fonts import FAMILIES, GENERIC, cover
from nmtflex.figures.growth import growth
from nmtflex.figures.heatmaps import attention, memory
from nmtflex.figures.learning import learning
from nmtflex.figures.lengths import by_length
from nmtflex.figures.reliability import reliability
from nmtflex.figures.speed import speed
from nmtflex.figures.steps import focus, gate
from nmtflex.figures.style import look
from nmtflex.figures.tradeoff import trade_off, trade_offs
from nmtflex.files import atomic_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "attention", "by_length", "check_matplotlib", "comparison", "encoding", "focus", "gate",
    "growth", "learning", "memory", "reliability", "save", "speed", "trade_off", "trade_offs",
]  # fmt: skip


def check_matplotlib() -> None:
    """Check that figures can be drawn.

    Raises:
        OptionError: matplotlib is not installed.
    """
    try:
        import matplotlib as _  # noqa: F401, ICN001
    except ImportError as error:
        raise OptionError(
            "figures need matplotlib; install it with: pip install matplotlib matplotlib-fontja"
        ) from error


@look()
def save(figure: Figure, path: Path) -> str:
    """Write a figure completely or not at all.

    Returns:
        The characters that no font has, each once: they are drawn as boxes, but stay text in SVG.
    """
    drawn = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        missing = _choose_fonts(figure)
        figure.savefig(drawn, format=path.suffix.removeprefix("."), dpi=150)
    with atomic_file(path) as file:
        file.write(drawn.getvalue())
    return missing


def _choose_fonts(figure: Figure) -> str:
    """Give texts the fonts that their characters need; return the characters that none has."""
    from matplotlib.text import Text

    figure.draw_without_rendering()  # so that axes make their labels
    texts = [text for text in figure.findobj(Text) if text.get_text()]
    families, missing = cover({one for text in texts for one in text.get_text()})
    if len(families) > len(FAMILIES):
        for text in texts:
            text.set_fontfamily([*families, GENERIC])
    return missing
