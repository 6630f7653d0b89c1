"""Runs ``nmtflex serve`` as a process, and speaks with it: politely, or in raw bytes.

with Served(run, "--workers", 2) as server:
    server.post("/translate", q="Hello", source="en", target="ja").json()
    server.raw(b"GET /health HTTP/1.0\\r\\n\\r\\n")
    assert server.stop() == 0
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx

WAIT = 300  # seconds; a machine may stand still meanwhile


class Served:
    """A server under way."""

    def __init__(self, *arguments: object) -> None:
        patient = ("--port", 0, "--timeout", 600)
        line = (sys.executable, "-m", "nmtflex", "serve", *arguments, *patient)
        self.arguments = [str(word) for word in line]
        self.said: list[str] = []

    def __enter__(self) -> Served:
        own = {"NMTFLEX_COMPILE_NOTICE": "off", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            self.arguments, stderr=subprocess.PIPE, text=True, env=os.environ | own
        )
        for line in self.process.stderr:
            self.said.append(line)
            if found := re.search(r"serving on http://127\.0\.0\.1:(\d+);", line):
                self.port = int(found[1])
                break
        else:
            raise AssertionError("".join(self.said))
        self.reader = threading.Thread(target=lambda: self.said.extend(self.process.stderr))
        self.reader.start()
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=WAIT)
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGCONT)
        self.stop()
        self.client.close()
        self.reader.join()
        self.process.stderr.close()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Let the server end; return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(WAIT)

    def get(self, path: str) -> httpx.Response:
        return self.client.get(path)

    def post(self, path: str, **fields: object) -> httpx.Response:
        """Send fields as JSON."""
        return self.client.post(path, json=fields)

    def translated(self, text: object, source: str = "en", target: str = "ja") -> object:
        """Return the translation of a text, or of several."""
        answer = self.post("/translate", q=text, source=source, target=target)
        assert answer.status_code == 200, answer.text
        return answer.json()["translatedText"]

    def raw(self, *pieces: bytes) -> bytes:
        """Send bytes over a connection of their own; return all that comes until it is closed."""
        with socket.create_connection(("127.0.0.1", self.port), WAIT) as connection:
            with contextlib.suppress(ConnectionError):  # closed before it has read all
                for piece in pieces:
                    connection.sendall(piece)
            return b"".join(received(connection))

    def workers(self) -> list[int]:
        """Return the numbers of the worker processes."""
        number = self.process.pid
        try:
            return [*map(int, Path(f"/proc/{number}/task/{number}/children").read_text().split())]
        except OSError:  # it has ended
            return []

    def metric(self, name: str) -> float:
        """Return one of the server's figures."""
        return float(re.search(rf"^{name} (\S+)$", self.get("/metrics").text, re.MULTILINE)[1])

    def until(self, name: str, reached: Callable[[float], bool]) -> None:
        """Wait until a figure is as it should be."""
        until(lambda: reached(self.metric(name)), name)


def received(connection: socket.socket) -> Iterator[bytes]:
    """Yield what comes; a client that is refused while it sends may be cut off."""
    with contextlib.suppress(ConnectionError):
        while data := connection.recv(1 << 16):
            yield data


def until(reached: Callable[[], bool], what: str) -> None:
    """Wait until something is so."""
    end = time.monotonic() + WAIT
    while not reached():
        assert time.monotonic() < end, what
        time.sleep(0.02)
