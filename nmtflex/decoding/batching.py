"""Reading lines ahead, and batching sentences for decoding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")

# Source positions times hypotheses of a batch, padding included. An additive score may need a
# tensor of as many rows, so a very long line or a wide beam makes small batches.
MAX_POSITIONS = 2**17


def batches(lengths: Sequence[int], sentences: int, beam: int = 1) -> Iterator[list[int]]:
    """Split sentences into batches of similar length, the longest first, to save padding.

    Args:
        lengths: Tokens of each sentence; empty ones go into no batch.
        sentences: Most sentences per batch; long ones make smaller batches.
        beam: Hypotheses per sentence.

    Yields:
        Indices into ``lengths``.
    """
    order = sorted((i for i, length in enumerate(lengths) if length), key=lambda i: -lengths[i])
    start = 0
    while start < len(order):
        size = max(1, min(sentences, MAX_POSITIONS // (beam * lengths[order[start]])))
        yield order[start : start + size]
        start += size


def buffers(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of ``size`` items, the last one shorter.

    An error from reading an item is raised after the items before it were yielded.
    """
    buffer: list[Item] = []
    try:
        for item in items:
            buffer.append(item)
            if len(buffer) == size:
                yield buffer
                buffer = []
    except Exception:
        if buffer:
            yield buffer
        raise
    if buffer:
        yield buffer


def checked(lines: Any) -> Iterator[str]:
    """Return lines, each of which is checked as it is read.

    Raises:
        TypeError: They are one string, or a line is not a string.
    """
    if isinstance(lines, str):
        raise TypeError("translate takes a list of lines, not one string")
    if isinstance(lines, bytes | bytearray) or not isinstance(lines, Iterable):
        raise TypeError(f"translate takes a list of lines, not {type(lines).__name__}")
    return _checked(lines)


def _checked(lines: Iterable[Any]) -> Iterator[str]:
    for index, line in enumerate(lines):
        if not isinstance(line, str):
            remedy = "; decode it" if isinstance(line, bytes | bytearray) else ""
            raise TypeError(
                f"translate takes lines of str; line {index} (from 0) is of "
                f"{type(line).__name__}{remedy}"
            )
        yield line
