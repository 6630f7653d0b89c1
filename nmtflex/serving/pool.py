"""The worker processes of a server, seen from the server: started, asked, and replaced."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from typing import Any

from nmtflex.errors import RunError
from nmtflex.serving.messages import LENGTH, packed

PATIENCE = 10.0  # seconds that a process has to end by itself


class WorkerLost(Exception):  # noqa: N818
    """A worker process ended while it was asked, or before."""


class Worker:
    """One process that translates.

    Args:
        setup: What it opens; see ``worker.main``.
    """

    def __init__(self, setup: dict[str, Any]) -> None:
        self._setup = setup
        self._process: Process | None = None
        self._ready = False

    @property
    def alive(self) -> bool:
        """Whether the process runs, and has opened its runs."""
        return self._ready and self._process is not None and self._process.returncode is None

    async def start(self) -> list[dict[str, Any]]:
        """Start the process; return what it says about each of its models.

        Raises:
            RunError: It cannot open the runs; it has then ended.
            WorkerLost: It ended.
        """
        self._ready = False
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "nmtflex.serving.worker"),
            stdin=PIPE,
            stdout=PIPE,
        )
        answer = await self.ask(self._setup)
        if "error" in answer:
            await self.stop()
            raise RunError(answer["error"])
        self._ready = True
        return list(answer["models"])

    async def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and return the answer.

        Raises:
            WorkerLost: The process ended.
        """
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise WorkerLost("the worker has not started")
        try:
            process.stdin.write(packed(message))
            await process.stdin.drain()
            (length,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
            return dict(json.loads(await process.stdout.readexactly(length)))
        except (OSError, asyncio.IncompleteReadError) as error:
            code = await process.wait()
            raise WorkerLost(f"worker {process.pid} ended with code {code}") from error

    async def ended(self) -> None:
        """Return when the process has ended."""
        if self._process is not None:
            await self._process.wait()

    async def kill(self) -> None:
        """End the process at once, whatever it does."""
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def stop(self) -> None:
        """Let the process end, and wait for it."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()  # at the end of its input it ends
        try:
            await asyncio.wait_for(process.wait(), PATIENCE)
        except TimeoutError:
            await self.kill()


class Pool:
    """Worker processes that are all alike.

    Args:
        setup: What each opens; see ``worker.main``.
        count: Processes.
    """

    def __init__(self, setup: dict[str, Any], count: int) -> None:
        self.workers: Sequence[Worker] = [Worker(setup) for _ in range(count)]

    async def start(self) -> list[dict[str, Any]]:
        """Start all processes; return what each says about its models.

        Raises:
            RunError: They cannot open the runs.
        """
        try:
            return (await asyncio.gather(*(worker.start() for worker in self.workers)))[0]
        except WorkerLost as error:
            await self.stop()
            raise RunError(f"{error} while it opened the runs") from error
        except RunError:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Let all processes end, and wait for them."""
        await asyncio.gather(*(worker.stop() for worker in self.workers))
