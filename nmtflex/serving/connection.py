"""Connections that do not wait for ever for the head of a request."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

SLOWEST = 10.0  # seconds for the head of a request to arrive, or for a client to read on


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that closes a connection whose request does not begin, or does not go on."""

    _end: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the clock of a new connection."""
        super().connection_made(transport)
        self._start()

    def data_received(self, data: bytes) -> None:
        """Take data; the clock runs until a head is whole."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop()
        else:
            self._start()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the clocks."""
        self._stop()
        self._read()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start the clock of a client that does not read."""
        super().pause_writing()
        self._unread = self.loop.call_later(SLOWEST, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop it."""
        self._read()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, in the form of all errors."""
        body = json.dumps({"error": msg}).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
        head = h11.Response(
            status_code=400, headers=[*headers, ("connection", "close")], reason="Bad Request"
        )
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None:
            self.cycle.disconnected = True  # the request that the rest belongs to has its answer
        self.transport.close()

    def _read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _start(self) -> None:
        if self._end is None:
            self._end = self.loop.call_later(SLOWEST, self._expire)

    def _stop(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None

    def _expire(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
