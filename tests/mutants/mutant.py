"""What a mutant is."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """A mistake to plant: ``old`` in a file, which must stand there once, becomes ``new``."""

    file: str
    old: str
    new: str
    breaks: str  # what is wrong then
    tests: str  # arguments of pytest that should notice it
