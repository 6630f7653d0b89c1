"""What stands before the routes: size and pace of bodies, and the counts of all requests."""

from __future__ import annotations

import asyncio
import json
import time

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmtflex.serving.metrics import Metrics
from nmtflex.serving.waiting import GONE

SLOWEST = 30.0  # seconds for a whole body to arrive
TOGETHER = 20  # bodies of the greatest size that are in memory at once


class _TooLarge(Exception):  # noqa: N818
    pass


class _TooSlow(Exception):  # noqa: N818
    pass


class _TooMany(Exception):  # noqa: N818
    pass


class Guard:
    """Refuses bodies that are too large or too slow, and counts requests.

    Args:
        app: What answers.
        most: Bytes of a body.
        metrics: Counts.
    """

    def __init__(self, app: ASGIApp, most: int, metrics: Metrics) -> None:
        self._app = app
        self._bodies = _Bodies(most)
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        reply = _Reply(send)
        body = _Body(scope, receive, self._bodies)
        began = time.monotonic()
        with self._metrics.in_flight.track_inprogress():
            try:
                await self._answer(scope, body, reply)
            finally:
                body.forget()
                path = getattr(scope.get("route"), "path", "other")
                self._metrics.answered(path, reply.status or 500, time.monotonic() - began)

    async def _answer(self, scope: Scope, body: _Body, reply: _Reply) -> None:
        names = [name for name, _ in scope["headers"]]
        if b"content-length" in names and b"transfer-encoding" in names:
            # A proxy may take the one, and we the other, as the end (RFC 9112, section 6.3).
            await reply.refuse(400, "Request has both Content-Length and Transfer-Encoding")
            return
        try:
            await self._app(scope, body.receive, reply.send)
        except _TooLarge:
            await reply.refuse(413, f"Request body exceeds {self._bodies.most} bytes")
        except _TooSlow:
            await reply.refuse(408, f"Request body took longer than {SLOWEST:.0f} seconds")
        except _TooMany:
            await reply.refuse(503, "Too many requests at once")
        except ClientDisconnect:
            reply.status = reply.status or GONE
        except asyncio.CancelledError:
            await reply.refuse(503, "The server ends")


class _Bodies:
    """How much memory the bodies of all requests take."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.size = 0


class _Body:
    """The body of a request, measured while it arrives."""

    def __init__(self, scope: Scope, receive: Receive, bodies: _Bodies) -> None:
        self._receive = receive
        self._bodies = bodies
        self._size = 0
        self._end = time.monotonic() + SLOWEST
        self._whole = False
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        self._declared = int(declared) if declared.isdigit() else 0

    async def receive(self) -> Message:
        if self._whole:  # only the end of the connection can come
            return await self._receive()
        if self._declared > self._bodies.most:
            raise _TooLarge
        try:
            left = self._end - time.monotonic()
            message = await asyncio.wait_for(self._receive(), max(0.0, left))
        except TimeoutError:
            raise _TooSlow from None
        arrived = len(message.get("body", b""))
        self._size += arrived
        self._bodies.size += arrived
        if self._size > self._bodies.most:
            raise _TooLarge
        if self._bodies.size > TOGETHER * self._bodies.most:
            raise _TooMany
        self._whole = not message.get("more_body", False)
        return message

    def forget(self) -> None:
        """Free what it took."""
        self._bodies.size -= self._size


class _Reply:
    """The answer to a request, of which the status is noted."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)

    async def refuse(self, status: int, error: str) -> None:
        """Answer with an error, and end the connection: the rest of the body is not read."""
        if self.status:
            return
        body = json.dumps({"error": error}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})
