"""Bodies that are too large, too slow or too many, and the counts of all requests."""

from __future__ import annotations

import asyncio
import json

import pytest
from starlette.requests import ClientDisconnect, Request

from nmtflex.serving import guard
from nmtflex.serving.guard import Guard
from nmtflex.serving.metrics import Metrics


async def reader(scope, receive, send):
    """Answer with the number of bytes of the body."""
    body = await Request(scope, receive).body()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(len(body)).encode()})


class Client:
    """Sends a body in pieces, and notes what comes."""

    def __init__(self, *pieces, headers=(), pause=0.0):
        self.pieces = list(pieces)
        self.scope = {"type": "http", "method": "POST", "path": "/", "headers": list(headers)}
        self.pause = pause
        self.sent = []

    async def receive(self):
        await asyncio.sleep(self.pause)
        if not self.pieces:
            return {"type": "http.disconnect"}
        piece = self.pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(self.pieces)}

    async def send(self, message):
        self.sent.append(message)

    async def ask(self, guarded):
        await guarded(self.scope, self.receive, self.send)
        return self

    @property
    def status(self):
        return self.sent[0]["status"] if self.sent else None

    @property
    def error(self):
        return json.loads(self.sent[1]["body"])["error"]


@pytest.fixture
def metrics():
    return Metrics()


def asked(metrics, client, app=reader, most=10):
    return asyncio.run(asyncio.wait_for(client.ask(Guard(app, most, metrics)), 60))


def counted(metrics, status):
    return (
        f'nmtflex_requests_total{{path="other",status="{status}"}} 1.0' in metrics.text().decode()
    )


@pytest.mark.parametrize("pieces", [[b""], [b"0123456789"], [b"01234", b"56789"], [b"", b"1", b""]])
def test_bodies_up_to_the_limit_pass(metrics, pieces):
    client = asked(metrics, Client(*pieces))
    assert client.sent[1]["body"] == str(len(b"".join(pieces))).encode()
    assert counted(metrics, 200)


@pytest.mark.parametrize("pieces", [[b"0123456789a"], [b"01234", b"56789", b"a"]])
def test_larger_bodies_are_413(metrics, pieces):
    client = asked(metrics, Client(*pieces))
    assert client.status == 413
    assert "10 bytes" in client.error
    assert (b"connection", b"close") in client.sent[0]["headers"]
    assert counted(metrics, 413)


def test_a_declared_length_is_413_before_anything_is_read(metrics):
    client = Client(b"0", b"1", headers=[(b"content-length", b"11")])
    assert asked(metrics, client).status == 413
    assert len(client.pieces) == 2


def test_slow_bodies_are_408(metrics, monkeypatch):
    """Every piece comes in time, but not all of them."""
    monkeypatch.setattr(guard, "SLOWEST", 0.2)
    assert asked(metrics, Client(*100 * [b"a"], pause=0.01), most=1000).status == 408
    assert counted(metrics, 408)


def test_a_whole_body_has_no_clock(metrics, monkeypatch):
    monkeypatch.setattr(guard, "SLOWEST", 0.1)

    async def slow(scope, receive, send):
        await Request(scope, receive).body()
        await asyncio.sleep(0.3)
        assert (await receive())["type"] == "http.disconnect"
        await send({"type": "http.response.start", "status": 200, "headers": []})

    assert asked(metrics, Client(b"a", b"b"), slow).status == 200


def test_bodies_of_all_requests_have_a_limit_together(metrics, monkeypatch):
    monkeypatch.setattr(guard, "TOGETHER", 2)
    inside, go = [], asyncio.Event()

    async def holds(scope, receive, send):
        inside.append(await Request(scope, receive).body())
        await go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def test():
        guarded = Guard(holds, 10, metrics)
        clients = [Client(b"0123456789") for _ in range(3)]
        tasks = [asyncio.create_task(client.ask(guarded)) for client in clients]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        assert [client.status for client in clients] == [None, None, 503]
        go.set()
        await asyncio.gather(*tasks)
        assert [client.status for client in clients] == [200, 200, 503]
        assert (await Client(b"0123456789").ask(guarded)).status == 200  # there is room again

    asyncio.run(asyncio.wait_for(test(), 60))


def test_a_length_and_chunks_are_one_too_many(metrics):
    headers = [(b"content-length", b"1"), (b"transfer-encoding", b"chunked")]
    client = asked(metrics, Client(b"a", headers=headers))
    assert client.status == 400
    assert (b"connection", b"close") in client.sent[0]["headers"]


def test_a_client_that_goes_away_gets_nothing(metrics):
    async def disconnected(scope, receive, send):
        raise ClientDisconnect

    assert asked(metrics, Client(), disconnected).sent == []
    assert counted(metrics, 499)


def test_what_is_cancelled_at_the_end_is_503(metrics):
    async def test():
        client = Client(b"a", b"b", pause=30)
        task = asyncio.create_task(client.ask(Guard(reader, 10, metrics)))
        await asyncio.sleep(0.01)
        task.cancel()
        await task
        assert client.status == 503

    asyncio.run(asyncio.wait_for(test(), 60))


def test_an_error_inside_is_counted_and_goes_on(metrics):
    async def fails(scope, receive, send):
        raise KeyError("a mistake")

    with pytest.raises(KeyError):
        asked(metrics, Client(), fails)
    assert counted(metrics, 500)
    assert "nmtflex_requests_in_flight 0.0" in metrics.text().decode()


def test_nothing_is_refused_after_an_answer_has_begun(metrics):
    async def early(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await Request(scope, receive).body()

    client = asked(metrics, Client(20 * b"a"), early)
    assert [message["type"] for message in client.sent] == ["http.response.start"]
