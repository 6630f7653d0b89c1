"""Translation shared by the processes that torchrun started, in order.

The first process reads and writes. Each of N processes translates every Nth line of a buffer; the
output is the same as that of a single process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from nmtflex.config import OutputConfig
from nmtflex.decoding.batching import buffers
from nmtflex.decoding.stream import Chunk, ChunkTranslation
from nmtflex.decoding.tally import Tally
from nmtflex.decoding.traces import SentenceTrace
from nmtflex.decoding.translation import Translation
from nmtflex.ranks import Ranks, merge


def lead(
    ranks: Ranks, setup: ChunkTranslation, lines: Iterable[str], output: OutputConfig
) -> Iterator[Chunk]:
    """Share buffers of lines, and yield each with its translations; for the first process.

    Args:
        ranks: The processes.
        setup: Opens the model.
        lines: The source; a buffer is read once the one before it was written.
        output: The size of a buffer.

    Raises:
        NmtflexError: From reading, or another process is lost.
    """
    translate = setup()
    for buffer in buffers(lines, output.buffer):
        ranks.from_first(buffer)
        own = translate(ranks.share(buffer))
        # This process's own part need not be packed.
        parts = [own, *map(unpack, ranks.gather(None)[1:])]
        tally = Tally()
        for part in parts:
            tally.merge(part.tally)
        yield Chunk(buffer, merge([part.found for part in parts]), tally)
    ranks.from_first(None)


def follow(ranks: Ranks, setup: ChunkTranslation) -> None:
    """Translate for the first process until it has read all.

    Raises:
        NmtflexError: A broken model, or another process is lost.
    """
    translate = setup()
    while (buffer := ranks.from_first()) is not None:
        ranks.gather(pack(translate(ranks.share(buffer))))


def pack(chunk: Chunk) -> dict[str, Any]:
    """Return a form for JSON, which keeps every bit of floating-point numbers."""
    found = [
        [translation._replace(trace=_lists(translation.trace)) for translation in translations]
        for translations in chunk.found
    ]
    return {"lines": chunk.lines, "found": found, "tally": chunk.tally.to_lists()}


def unpack(packed: dict[str, Any]) -> Chunk:
    """Rebuild from ``pack``."""
    found = [
        [
            translation._replace(
                trace=_arrays(translation.trace),
                links=[(source, target) for source, target in translation.links],
            )
            for translation in (Translation(*fields) for fields in translations)
        ]
        for translations in packed["found"]
    ]
    return Chunk(packed["lines"], found, Tally.from_lists(*packed["tally"]))


def _lists(trace: SentenceTrace | None) -> Any:
    return None if trace is None else [None if value is None else value.tolist() for value in trace]


def _arrays(trace: Any) -> SentenceTrace | None:
    if trace is None:
        return None
    parts: list[Any] = [None if part is None else np.array(part) for part in trace]
    return SentenceTrace(*parts)
