"""Work for a request, ended when its client goes away or its time is up."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

from nmtflex.serving.fields import Refused
from nmtflex.serving.queueing import Busy, Faulty, Lost

Result = TypeVar("Result")

GONE = 499  # nobody sees this status, save in the metrics


async def answered(request: Request, work: Coroutine[Any, Any, Result], seconds: float) -> Result:
    """Return the result of work for a request, whose body has been read.

    Raises:
        Refused: It takes too long, too much waits, workers were lost, or the client has gone.
    """
    task = asyncio.create_task(work)
    gone = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({task, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
    except Busy as error:
        raise Refused(429, f"Slowdown: {error}; try again later") from error
    except Lost as error:
        raise Refused(503, f"Cannot translate text: {error}; try again") from error
    except Faulty as error:
        raise Refused(500, "Cannot translate text") from error
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)
    if gone.done() and not gone.cancelled():
        raise Refused(GONE, "the client has closed the connection")
    raise Refused(503, f"Cannot translate text within {seconds:g} seconds; send less at once")


async def _gone(request: Request) -> None:
    """Return when the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
