"""Sentences of all requests in one queue, translated together where they may be.

Whichever worker is free takes the sentence that waits longest, and with it others, in the order in
which they came, that have the same model and options, but leaves other free workers their share.
What a sentence becomes depends on nothing else in its batch (docs/architecture.md), so nobody's
answer depends on who else asks.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections import deque
from collections.abc import Awaitable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from nmtflex.serving.pool import Pool, Worker, WorkerLost

LOG = logging.getLogger("nmtflex.serving")
WINDOW = 64  # sentences that one request has in the queue at once, so that others get their turn
MOST = 64  # sentences of a batch
TRIES = 2  # workers that a sentence may be lost with
PAUSE = 1.0  # seconds before a worker is started again that could not start
HUNG = 60.0  # seconds that a batch may take at least
MEMORY = 0.1  # weight of the last batch in the pace
MOMENT = 0.005  # seconds without a new sentence after which a worker waits for no more
PATIENCE = 0.2  # share of the last batch's seconds for which it waits at most


class Busy(Exception):  # noqa: N818
    """More sentences wait than may."""


class Lost(Exception):  # noqa: N818
    """The workers that translated a sentence ended."""


class Faulty(Exception):  # noqa: N818
    """A worker could not translate a batch; the message is its error's."""


class Work(NamedTuple):
    """What sentences of a batch have in common."""

    model: int  # its place among those of a worker
    options: Hashable  # pairs of names and values


@dataclass(eq=False)
class Waiting:
    """One sentence in the queue."""

    work: Work
    text: str
    answer: asyncio.Future[Any]
    lost: int = 0  # workers that ended while they translated it


class Dispatcher:
    """Gives the sentences of all requests to worker processes.

    Args:
        pool: The processes, which have started.
        limit: Most sentences that may wait.
        latency: Seconds that a batch should take.
        timeout: Seconds after which the clients whose sentences are in a batch have been refused:
            a worker that still translates it is ended.
    """

    def __init__(self, pool: Pool, limit: int, latency: float, timeout: float) -> None:
        self._pool = pool
        self._limit = limit
        self._latency = latency
        self._timeout = timeout
        self._queue: deque[Waiting] = deque()
        self._filled = asyncio.Event()
        self._in_work: dict[Worker, int] = {}  # sentences of each worker that translates
        self._pace = 0.0  # seconds a character
        self._tasks: list[asyncio.Task[None]] = []
        self.batches: list[int] = [0, 0, 0]  # batches, sentences and characters so far
        self.restarts = 0

    def start(self) -> None:
        """Start to serve; needs a running event loop."""
        self._tasks = [asyncio.create_task(self._serve(worker)) for worker in self._pool.workers]

    async def stop(self) -> None:
        """Stop serving. What still waits is cancelled."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for one in self._queue:
            one.answer.cancel()
        await self._pool.stop()

    @property
    def waiting(self) -> int:
        """Sentences in the queue."""
        return len(self._queue)

    @property
    def alive(self) -> int:
        """Workers that can translate."""
        return sum(worker.alive for worker in self._pool.workers)

    async def translate(self, work: Work, texts: Sequence[str]) -> list[Any]:
        """Return the worker's answer about each text.

        If the caller is cancelled, what has not begun is not translated.

        Raises:
            Busy: Too many sentences wait.
            Lost: Worker processes ended, again and again.
            Faulty: The worker could not translate.
        """
        self._admit()
        answers: list[Any] = [None] * len(texts)
        left = iter(enumerate(texts))
        pending: dict[asyncio.Future[Any], int] = {}
        try:
            while True:
                for place, text in left:
                    pending[self._enter(work, text)] = place
                    if len(pending) >= WINDOW:
                        break
                if not pending:
                    return answers
                done, _ = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for answer in done:
                    answers[pending.pop(answer)] = answer.result()
        finally:
            for answer in pending:
                answer.cancel()

    def _admit(self) -> None:
        """Check that a request may enter; it then finishes, whatever comes after it."""
        self._drop_cancelled()
        if len(self._queue) >= self._limit:
            raise Busy(f"{len(self._queue):,} sentences are waiting")

    def _enter(self, work: Work, text: str) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._queue.append(Waiting(work, text, answer))
        self._filled.set()
        return answer

    def _drop_cancelled(self) -> None:
        self._queue = deque(one for one in self._queue if not one.answer.done())

    async def _serve(self, worker: Worker) -> None:
        """Keep one worker busy, and start it again when it ends."""
        while True:
            if not worker.alive:
                await self._restart(worker)
            elif batch := self._take():
                self._in_work[worker] = len(batch)
                began = time.monotonic()
                try:
                    await self._give(worker, batch)
                finally:
                    del self._in_work[worker]
                await self._gather(len(batch), PATIENCE * (time.monotonic() - began))
            else:
                self._filled.clear()
                await _first(self._filled.wait(), worker.ended())

    async def _gather(self, answered: int, seconds: float) -> None:
        """Wait until a fair part of all sentences waits: who has an answer asks again at once.

        A single sentence waits for nobody. Without this, the first one that came would be
        translated alone, and large batches, which take less time a sentence, were rare. With one
        part more than workers, the sentences of the next batch come in while all workers translate.
        """
        until, before = time.monotonic() + seconds, -1
        together = answered + len(self._queue) + sum(self._in_work.values())
        expected = math.ceil(together / (self.alive + 1)) if answered > 1 else 0
        while before < len(self._queue) < min(MOST, expected) and time.monotonic() < until:
            before = len(self._queue)
            await asyncio.sleep(MOMENT)

    async def _restart(self, worker: Worker) -> None:
        self.restarts += 1
        try:
            await worker.start()
        except Exception as error:  # whatever it is, the next start may succeed
            LOG.error("a worker did not start: %s", error)  # noqa: TRY400
            await asyncio.sleep(PAUSE)

    def _take(self) -> list[Waiting]:
        """Take the next batch out of the queue."""
        self._drop_cancelled()
        if not self._queue:
            return []
        work = self._queue[0].work
        share = math.ceil(len(self._queue) / max(1, self.alive - len(self._in_work)))
        most = 1 if self._queue[0].lost else min(MOST, share)
        batch: list[Waiting] = []
        others: deque[Waiting] = deque()
        seconds = 0.0
        for one in self._queue:
            seconds += len(one.text) * self._pace * (one.work == work)
            joins = not one.lost and one.work == work and seconds <= self._latency
            (batch if not batch or (joins and len(batch) < most) else others).append(one)
        self._queue = others
        return batch

    async def _give(self, worker: Worker, batch: list[Waiting]) -> None:
        """Let a worker translate a batch, and hand out the answers."""
        work = batch[0].work
        message = {"model": work.model, "options": work.options, "texts": [x.text for x in batch]}
        began = time.monotonic()
        try:
            async with asyncio.timeout(max(self._timeout, HUNG)):
                answer = await worker.ask(message)
        except (WorkerLost, TimeoutError) as error:
            LOG.error("%s", str(error) or "a worker was ended: it seems to hang")  # noqa: TRY400
            await worker.kill()
            self._try_again(batch)
            return
        except asyncio.CancelledError:
            for one in batch:
                one.answer.cancel()
            raise
        self._count(batch, time.monotonic() - began)
        for place, one in enumerate(batch):
            with contextlib.suppress(asyncio.InvalidStateError):  # cancelled meanwhile
                if "error" in answer:
                    one.answer.set_exception(Faulty(answer["error"]))
                else:
                    one.answer.set_result(answer["results"][place])

    def _count(self, batch: list[Waiting], seconds: float) -> None:
        size = sum(len(one.text) for one in batch)
        pace = seconds / max(1, size)
        self._pace += (pace - self._pace) * (MEMORY if self._pace else 1)
        for place, number in enumerate((1, len(batch), size)):
            self.batches[place] += number

    def _try_again(self, batch: list[Waiting]) -> None:
        """Put lost sentences in front of the queue; those lost too often fail.

        One of them may be what ends workers, so each is tried again by itself.
        """
        for one in reversed(batch):
            one.lost += 1
            if one.answer.done():
                continue
            if one.lost >= TRIES:
                one.answer.set_exception(Lost("the process that translated it ended"))
            else:
                self._queue.appendleft(one)
        self._filled.set()


async def _first(*events: Awaitable[Any]) -> None:
    """Return when one of some events has come."""
    waits = [asyncio.ensure_future(event) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
