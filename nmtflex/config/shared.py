"""Options and checks that several option groups share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from nmtflex.config.base import Opt

SPLIT = (
    "Split of the run's own data: valid or test (default test, or valid if there is no test split)."
)
RunSplit = Annotated[str | None, Opt(SPLIT)]

ENDINGS = (".png", ".svg", ".pdf")


def figure_fault(output: Path | None) -> list[str]:
    """Return at most one fault of the file that --output names for a figure."""
    if output is None or output.suffix in ENDINGS:
        return []
    return [f"--output {output}: unknown suffix {output.suffix!r}; use {', '.join(ENDINGS)}"]


def increasing(flag: str, text: str) -> list[str]:
    """Return at most one fault of a comma-separated list of increasing positive integers."""
    try:
        numbers = [0, *map(int, text.split(","))]
    except ValueError:
        numbers = []
    if numbers and numbers == sorted(set(numbers)):
        return []
    return [f"{flag} must be increasing integers of at least 1, not {text!r}"]
