"""Connections whose client sends or reads too slowly are closed; the others stay."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest
import uvicorn

from nmtflex.serving import connection
from nmtflex.serving.connection import PatientProtocol

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LARGE = 64 << 20  # bytes, more than any buffer between server and client


async def app(scope, receive, send):
    """Answer after a while, longer than the head of a request may take; or at length."""
    if scope["path"] == "/large":
        size = LARGE
    else:
        size = 2
        await asyncio.sleep(0.6)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for _ in range(0, size, 1 << 20):
        await send({
            "type": "http.response.body",
            "body": b"x" * min(size, 1 << 20),
            "more_body": True,
        })
    await send({"type": "http.response.body"})


def talk(conversation, monkeypatch):
    """Let a client talk with a server on whose connections heads have 0.3 seconds."""
    monkeypatch.setattr(connection, "SLOWEST", 0.3)

    async def test():
        options = {"lifespan": "off", "log_config": None, "ws": "none"}
        server = uvicorn.Server(uvicorn.Config(app, http=PatientProtocol, **options))
        server.capture_signals = contextlib.nullcontext
        with socket.create_server(("127.0.0.1", 0)) as listener:
            task = asyncio.create_task(server.serve([listener]))
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            try:
                await conversation(reader, writer)
            finally:
                writer.close()
                server.should_exit = True
                await task

    asyncio.run(asyncio.wait_for(test(), 60))


async def one_answer(reader):
    return await reader.readuntil(b"\r\n0\r\n\r\n")


@pytest.mark.parametrize("begin", [b"", b"GET", GET[:-2]])
def test_a_head_that_does_not_come_closes_the_connection(begin, monkeypatch):
    async def conversation(reader, writer):
        writer.write(begin)
        assert await reader.read() == b""

    talk(conversation, monkeypatch)


def test_the_clock_does_not_run_while_the_server_works(monkeypatch):
    async def conversation(reader, writer):
        for _ in range(2):
            writer.write(GET)
            assert (await one_answer(reader)).startswith(b"HTTP/1.1 200")

    talk(conversation, monkeypatch)


def test_a_head_in_pieces_may_take_its_time_but_no_more(monkeypatch):
    async def conversation(reader, writer):
        with contextlib.suppress(ConnectionError):
            for byte in b"GET / HTTP/1.1\r\nX: " + 100 * b"y":
                if reader.at_eof():  # a byte sent to a closed connection would reset it
                    break
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.02)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        assert reader.at_eof()

    talk(conversation, monkeypatch)


def test_what_is_not_http_is_refused_in_the_form_of_all_errors(monkeypatch):
    async def conversation(reader, writer):
        writer.write(b"garbage\r\n\r\n")
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert answer.endswith(b'\r\n\r\n{"error": "Invalid HTTP request received."}')

    talk(conversation, monkeypatch)


def test_a_client_that_does_not_read_is_cut_off(monkeypatch):
    async def conversation(reader, writer):
        writer.transport.pause_reading()
        writer.write(GET.replace(b"/ ", b"/large "))
        await asyncio.sleep(2)
        writer.transport.resume_reading()
        size = 0
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 20):
                size += len(data)
        assert size < LARGE

    talk(conversation, monkeypatch)
