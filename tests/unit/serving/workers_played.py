"""Workers in the place of processes: they note what they are asked, and end when told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from nmtflex.serving.pool import WorkerLost


class PlayedWorker:
    """Translates by a function, or waits until it is let go."""

    def __init__(self, answer: Callable[[str], Any] = str.upper, *, holds: bool = False) -> None:
        self._answer = answer
        self.batches: list[list[str]] = []
        self.options: list[Any] = []
        self.starts = 0
        self.lethal: set[str] = set()  # texts that end it
        self.faulty: set[str] = set()
        self.alive = True
        self.free = asyncio.Event()
        self._end = asyncio.Event()
        if not holds:
            self.free.set()

    async def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        self.batches.append(message["texts"])
        self.options.append((message["model"], message["options"]))
        if self.lethal & set(message["texts"]):
            self.die()
        waits = [asyncio.ensure_future(event.wait()) for event in (self.free, self._end)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if self._end.is_set():
            raise WorkerLost("worker 1 ended with code -9")
        if self.faulty & set(message["texts"]):
            return {"error": "it is too long"}
        return {"results": [self._answer(text) for text in message["texts"]]}

    def die(self) -> None:
        self.alive = False
        self._end.set()

    async def ended(self) -> None:
        await self._end.wait()

    async def start(self) -> None:
        self.starts += 1
        self.alive = True
        self._end.clear()

    async def kill(self) -> None:
        self.die()


class PlayedPool:
    def __init__(self, *workers: PlayedWorker) -> None:
        self.workers = workers
        self.stopped = False

    async def stop(self) -> None:
        self.stopped = True
