"""Translations that reached the maximum length, and what to do about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from nmtflex.config.decoding import LOOP_TOKENS

# Of the 6,750 references of IWSLT14's test data, 11 repeat themselves as often.
TIMES = 3


def looping(tokens: Sequence[Hashable]) -> bool:
    """Return whether some four tokens in a row occur three times or more, as they do in a loop."""
    rows = Counter(zip(*(tokens[start:] for start in range(LOOP_TOKENS)), strict=False))
    return max(rows.values(), default=0) >= TIMES


def cut_off(subject: str, loops: int, where: str = "", *, flags: bool) -> str:
    """Return a warning.

    Args:
        subject: How many translations.
        loops: How many of them repeat themselves.
        where: Which lines.
        flags: Whether the options are those of the command line, or of Python.
    """
    ratio, length, retry = "max_length_ratio", "max_length", "retry_loops=True"
    if flags:
        ratio, length, retry = "--max-length-ratio", "--max-length", "--retry-loops"
    repeated = f", {loops:,} of them in a loop" if loops else ""
    ended = f", or set {retry} against loops" if loops else ""
    return (
        f"{subject} reached the maximum length and may lack the end{where}{repeated}; "
        f"raise {ratio} or {length}{ended}"
    )
