"""The routes, with workers that are played."""

from __future__ import annotations

import asyncio
import contextlib

import httpx
import pytest
from workers_played import PlayedPool, PlayedWorker

from nmtflex.config import AccessConfig, LimitConfig
from nmtflex.serving.access import Access
from nmtflex.serving.app import build_app
from nmtflex.serving.desk import Desk
from nmtflex.serving.languages import Pair
from nmtflex.serving.metrics import Metrics
from nmtflex.serving.queueing import Dispatcher
from nmtflex.serving.service import Model, Service
from nmtflex.serving.splitting import SplitText
from nmtflex.text.paragraphs import Paragraph

UNKNOWN = {"links": [], "words": 1, "confidence": None, "unaligned": None}
HELLO = {"q": "Hello", "source": "en", "target": "fr"}


class Whole:
    """Leaves texts in one piece."""

    def split(self, text):
        return SplitText([Paragraph("", [text], [""])], [""])

    def join(self, split, translations):
        return "".join(translations)


class English:
    """Takes every text for English."""

    def ranked(self, text):
        return []


@contextlib.asynccontextmanager
async def served(worker, limits=None, access=None):
    dispatcher = Dispatcher(PlayedPool(worker), 100, 1.0, 60.0)
    dispatcher.start()
    service = Service([Model([], Pair("en", "fr"), Whole())], dispatcher)
    limits, access = limits or LimitConfig(), access or AccessConfig()
    desk = Desk(service.languages, limits, Access(access, limits))
    desk.detector = English()
    app = build_app(desk, service, access.cors, Metrics(), page=False)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        yield client
    await dispatcher.stop()


def asked(path, worker=None, limits=None, access=None, **fields):
    """Return the status and the error, or what else is answered."""

    async def test():
        worker_ = worker or PlayedWorker(
            lambda text: UNKNOWN | {"texts": [text.upper()], "scores": [0.0]}
        )
        async with served(worker_, limits, access) as client:
            sent = client.post(path, json=fields) if fields else client.get(path)
            answer = await sent
            return answer.status_code, answer.json().get("error", answer.json())

    return asyncio.run(asyncio.wait_for(test(), 60))


def test_a_text_is_translated():
    assert asked("/translate", **HELLO) == (200, {"translatedText": "HELLO"})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("path", ["/translate", "/detect"])
def test_a_key_may_be_needed(path, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("secret\n")
    access = AccessConfig(api_keys=keys, require_key=True)
    error = "Please contact the server operator to get an API key"
    assert asked(path, access=access, **HELLO) == (400, error)
    assert asked(path, access=access, **HELLO, api_key="other") == (403, "Invalid API key")
    assert asked("/translate", access=access, **HELLO, api_key="secret")[0] == 200
    settings = asked("/frontend/settings", access=access)[1]
    assert (settings["apiKeys"], settings["keyRequired"]) == (True, True)


def test_requests_may_be_limited():
    async def test():
        worker = PlayedWorker(lambda text: UNKNOWN | {"texts": [text], "scores": [0.0]})
        async with served(worker, LimitConfig(request_limit=1)) as client:
            answers = [await client.post("/translate", json=HELLO) for _ in range(2)]
            assert [answer.status_code for answer in answers] == [200, 429]
            assert answers[1].json() == {"error": "Slowdown: 1 per 1 minute"}

    asyncio.run(asyncio.wait_for(test(), 60))


def test_no_limit_is_shown_as_such():
    assert asked("/frontend/settings", limits=LimitConfig(char_limit=0))[1]["charLimit"] == -1
    assert asked("/translate", limits=LimitConfig(char_limit=0), **HELLO)[0] == 200


def test_a_language_that_cannot_be_found_must_be_given():
    status, error = asked("/translate", **HELLO | {"source": "auto"})
    assert status == 400
    assert "source" in error


def test_a_client_is_told_nothing_of_what_went_wrong_inside(logged):
    worker = PlayedWorker(lambda text: {"nothing": "/secret/path"})
    assert asked("/translate", worker, **HELLO) == (500, "Internal server error")
    assert "KeyError" in logged.getvalue()
    worker.faulty = {"Hello"}
    assert asked("/translate", worker, **HELLO) == (500, "Cannot translate text")


def test_what_takes_too_long_is_503():
    status, error = asked(
        "/translate", PlayedWorker(holds=True), LimitConfig(timeout=0.05), **HELLO
    )
    assert status == 503
    assert "0.05 seconds" in error


def test_a_server_without_workers_is_ill():
    class Dead(PlayedWorker):
        async def start(self):
            await asyncio.sleep(60)

    worker = Dead()
    worker.die()
    assert asked("/health", worker) == (503, {"status": "error"})
    assert asked("/health") == (200, {"status": "ok"})
