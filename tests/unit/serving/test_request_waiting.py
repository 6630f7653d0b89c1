"""Work for a request ends when its client goes away, or when its time is up."""

from __future__ import annotations

import asyncio

import pytest
from starlette.requests import Request

from nmtflex.serving.fields import Refused
from nmtflex.serving.queueing import Busy, Faulty, Lost
from nmtflex.serving.waiting import GONE, answered


def run(work, seconds=60.0, *, leaves=False):
    """Wait for work of a request whose client leaves at once, or stays."""

    async def receive():
        if not leaves:
            await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def test():
        return await answered(Request({"type": "http", "headers": []}, receive), work, seconds)

    return asyncio.run(asyncio.wait_for(test(), 60))


async def result():
    return "done"


class Endless:
    cancelled = False

    async def __call__(self):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled = True
            raise


def test_the_result_is_returned():
    assert run(result()) == "done"


def test_work_ends_when_the_client_goes_away():
    endless = Endless()
    with pytest.raises(Refused) as caught:
        run(endless(), leaves=True)
    assert caught.value.status == GONE
    assert endless.cancelled


def test_work_ends_when_its_time_is_up():
    endless = Endless()
    with pytest.raises(Refused, match=r"within 0\.01 seconds") as caught:
        run(endless(), 0.01)
    assert caught.value.status == 503
    assert endless.cancelled


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (Busy("7 sentences are waiting"), 429, "^Slowdown: 7 sentences are waiting"),
        (Lost("the process ended"), 503, "the process ended"),
        (Faulty("/secret/path"), 500, "^Cannot translate text$"),
    ],
)
def test_what_can_go_wrong_has_its_status(error, status, message):
    async def fails():
        raise error

    with pytest.raises(Refused, match=message) as caught:
        run(fails())
    assert caught.value.status == status


def test_other_errors_are_not_hidden():
    async def fails():
        raise KeyError("a mistake")

    with pytest.raises(KeyError):
        run(fails())
