"""Which lines are read ahead, and which sentences are decoded together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from nmtflex.errors import NmtflexError

Item = TypeVar("Item")

# Source positions times hypotheses of a batch, padding counted. An additive score makes a tensor of
# as many rows: a very long line, or a wide beam, takes few others with it.
MAX_POSITIONS = 2**17


def batches(lengths: Sequence[int], sentences: int, beam: int = 1) -> Iterator[list[int]]:
    """Part sentences into batches of like length, the longest first, so that little is padded.

    Args:
        lengths: Tokens of each sentence; those without any go into no batch.
        sentences: Most sentences a batch; long ones make smaller batches.
        beam: Hypotheses a sentence.

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

    Raises:
        NmtflexError: What reading raises, once the items before the fault have been yielded.
    """
    buffer: list[Item] = []
    try:
        for item in items:
            buffer.append(item)
            if len(buffer) == size:
                yield buffer
                buffer = []
    except NmtflexError:
        if buffer:
            yield buffer
        raise
    if buffer:
        yield buffer
