"""Where the time of decoding goes: seconds in each part of a model, and in the search around it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Self

from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.ops.launch import wait_for

SEARCH = "search"  # all other work: top-k, beams, embeddings, Luong's layer, words


class Stopwatch:
    """Clocks the parts of a model while it decodes.

    Inside the block each part's method is timed; it waits for a GPU before and after, so that a
    part gets its own seconds (and the whole takes a little longer). The parts are the encoder (with
    what attention prepares once a sentence), attention, the recurrent cell with the previous word's
    side, and the output layer with softmax and best words; the rest is the search.

    Args:
        model: The one to be timed.
    """

    def __init__(self, model: Seq2Seq) -> None:
        self._parts = model.parts()
        self._device = model.device
        self._whole = 0.0  # seconds of all blocks
        self.seconds = dict.fromkeys((*self._parts, SEARCH), 0.0)

    def __enter__(self) -> Self:
        for part, methods in self._parts.items():
            for module, method in methods:
                # On the instance, where it hides the class's method until deleted.
                setattr(module, method, self._clocked(part, getattr(module, method)))
        self._begin = self._now()
        return self

    def __exit__(self, *_: object) -> None:
        self._whole += self._now() - self._begin
        self.seconds[SEARCH] = self._whole - sum(self.seconds[part] for part in self._parts)
        for methods in self._parts.values():
            for module, method in methods:
                delattr(module, method)

    def _clocked(self, part: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            begin = self._now()
            found = method(*args, **options)
            self.seconds[part] += self._now() - begin
            return found

        return call

    def _now(self) -> float:
        wait_for(self._device)
        return time.perf_counter()
