"""Fonts for text in figures: Latin, Greek, Japanese, and any others of the system."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

# DejaVu Sans comes with matplotlib, IPAexGothic with matplotlib-fontja.
FAMILIES = ("DejaVu Sans", "IPAexGothic")
GENERIC = "sans-serif"  # for an SVG reader without them
_JAPANESE = ("matplotlib_fontja", "fonts/ipaexg.ttf")


def register_fonts() -> None:
    """Register the Japanese font with matplotlib, if its package is installed.

    Importing the package would change the fonts of every figure of the process.
    """
    from matplotlib.font_manager import fontManager

    if "IPAexGothic" in fontManager.get_font_names():
        return
    found = importlib.util.find_spec(_JAPANESE[0])
    if found is not None and found.origin is not None:
        fontManager.addfont(Path(found.origin).parent / _JAPANESE[1])


def cover(characters: Iterable[str]) -> tuple[list[str], str]:
    """Choose font families for some characters.

    Returns:
        ``FAMILIES`` and the system's other families that help; and the characters that no font has,
        each once.
    """
    faces = _faces()
    missing = {character for character in characters if not character.isspace()}
    families = []
    for family in (*FAMILIES, *sorted(set(faces) - set(FAMILIES))):
        had = _code_points(faces[family]) if missing and family in faces else frozenset()
        found = {character for character in missing if ord(character) in had}
        if found or family in FAMILIES:
            families.append(family)
            missing -= found
    return families, "".join(sorted(missing))


def _faces() -> dict[str, str]:
    """Return the file of each family that has an upright face of normal weight.

    matplotlib's own are left out except DejaVu: mathematical ones, with other code points, and one
    with a box for every character.
    """
    import matplotlib as mpl
    from matplotlib.font_manager import fontManager

    own = mpl.get_data_path()
    return {
        entry.name: entry.fname
        for entry in fontManager.ttflist
        if entry.style == "normal"
        and entry.weight in (400, "normal", "regular")
        and (entry.name.startswith("DejaVu") or not entry.fname.startswith(own))
    }


@lru_cache(maxsize=64)
def _code_points(path: str) -> frozenset[int]:
    """Return the code points that a font file has."""
    from matplotlib.font_manager import get_font

    return frozenset(get_font(path).get_charmap())


def describe_font(characters: str, most: int = 5) -> str:
    """Name characters for a message: ``'😀' (U+1F600)``, and how many more."""
    named = [f"{character!r} (U+{ord(character):04X})" for character in characters[:most]]
    more = len(characters) - most
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")
