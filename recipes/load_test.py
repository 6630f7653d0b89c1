"""What a translation server stands: times, words a second, memory, and workers that die.

    load_test.py RUN LINES [--clients 1 8 32] [--seconds 20] [--rounds 3] [--int8] [--minutes 10]
                 [--kill] [--together 1]

Starts ``nmtflex serve RUN``, and clients beside it, on the same cores: each sends one line of the
file LINES after another, or several --together, and the next when it has the answer. ``nmtflex
translate`` gets the same lines in turns with them; its start, measured with one line, does not
count. --minutes goes on with the most clients and watches the memory of all processes; --kill ends
a worker by SIGKILL meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

NMTFLEX = [sys.executable, "-m", "nmtflex"]
SAMPLE = 2.0  # seconds between two looks at the memory


class Answer(NamedTuple):
    """What a client saw of one request."""

    status: int  # 0 if the connection ended
    seconds: float
    words: int  # of the source


class Load(NamedTuple):
    """What clients saw together."""

    answers: list[Answer]
    seconds: float

    @property
    def rate(self) -> float:
        """Requests a second."""
        return len(self.answers) / self.seconds

    @property
    def words(self) -> float:
        """Words a second that were translated."""
        return sum(one.words for one in self.answers if one.status == 200) / self.seconds

    def time(self, share: float) -> float:
        """Return the time, in milliseconds, in which a share of all requests was answered."""
        times = sorted(one.seconds for one in self.answers)
        return 1000 * times[max(0, math.ceil(share * len(times)) - 1)]

    @property
    def statuses(self) -> str:
        """How often there was which status."""
        counts = Counter(one.status for one in self.answers)
        return ", ".join(f"{number:,} of {status}" for status, number in sorted(counts.items()))


class Server(NamedTuple):
    """A server under way."""

    process: subprocess.Popen[str]
    port: int

    def processes(self) -> list[int]:
        """Return the numbers of its processes, that in front first."""
        number = self.process.pid
        children = Path(f"/proc/{number}/task/{number}/children").read_text(encoding="utf-8")
        return [number, *map(int, children.split())]

    def memory(self) -> float:
        """Return the resident memory of all its processes, in MB; shared pages count once each."""
        total = 0
        for number in self.processes():
            with contextlib.suppress(OSError):  # it has just ended
                text = Path(f"/proc/{number}/status").read_text(encoding="utf-8")
                found = re.search(r"VmRSS:\s+(\d+) kB", text)
                total += int(found[1]) if found else 0
        return total / 1024


@contextlib.contextmanager
def served(run: Path, shared: Sequence[str]) -> Iterator[Server]:
    """Start a server, and end it."""
    words = [*NMTFLEX, "serve", str(run), "--port", "0", *shared]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    if process.stderr is None:
        raise RuntimeError("the server has no standard error")
    said = []
    for line in process.stderr:
        said.append(line)
        if found := re.search(r"serving on http://127\.0\.0\.1:(\d+);", line):
            break
    else:
        sys.exit("".join(said))
    try:
        yield Server(process, int(found[1]))
    finally:
        process.terminate()
        process.wait()


async def ask(port: int, requests: Iterator[tuple[bytes, int]], end: float) -> list[Answer]:
    """Be one client until a moment: send requests over one connection, and wait for each answer."""
    answers = []
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.monotonic() < end:
        body, words = next(requests)
        began = time.monotonic()
        try:
            writer.write(
                b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
            )
            status = await read_status(reader)
        except (OSError, asyncio.IncompleteReadError):
            status = 0
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        answers.append(Answer(status, time.monotonic() - began, words))
    writer.close()
    return answers


async def read_status(reader: asyncio.StreamReader) -> int:
    """Read an answer, and return its status."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    length = re.search(r"^content-length: (\d+)", head, re.IGNORECASE | re.MULTILINE)
    await reader.readexactly(int(length[1]) if length else 0)
    return int(head.split()[1])


async def load(
    port: int, requests: Sequence[tuple[bytes, int]], clients: int, seconds: float
) -> Load:
    """Let some clients ask for so long; a request that has begun gets its answer."""
    began = time.monotonic()
    left = itertools.cycle(requests)  # all take from it
    found = await asyncio.gather(*(ask(port, left, began + seconds) for _ in range(clients)))
    return Load([answer for one in found for answer in one], time.monotonic() - began)


async def get(port: int, path: str) -> str:
    """Return a page of the server."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    text = (await reader.read()).decode()
    writer.close()
    return text.partition("\r\n\r\n")[2]


async def direction(port: int) -> dict[str, str]:
    """Return source and target of the server's first direction."""
    for one in json.loads(await get(port, "/languages")):
        for target in one["targets"]:
            if target != one["code"]:
                return {"source": one["code"], "target": target}
    raise ValueError("the server translates into no other language")


async def memories(server: Server, samples: list[float]) -> None:
    """Look at the memory again and again."""
    while True:
        samples.append(server.memory())
        await asyncio.sleep(SAMPLE)


async def kill(server: Server, pause: float) -> float:
    """End a worker after a while; return the seconds until all can translate again."""
    await asyncio.sleep(pause)
    before = await working(server.port)
    os.kill(server.processes()[1], signal.SIGKILL)
    began = time.monotonic()
    while await working(server.port) == before:  # until it is noticed
        await asyncio.sleep(0.005)
        if time.monotonic() - began > 1:
            break
    while await working(server.port) < before:
        await asyncio.sleep(0.02)
    return time.monotonic() - began


async def working(port: int) -> float:
    """Return how many workers can translate."""
    found = re.search(r"^nmtflex_workers (\S+)", await get(port, "/metrics"), re.MULTILINE)
    return float(found[1]) if found else 0.0


def offline(run: Path, lines: Sequence[str], shared: Sequence[str]) -> float:
    """Return the seconds in which ``nmtflex translate`` translates lines."""
    words = [*NMTFLEX, "translate", str(run), *shared]
    began = time.monotonic()
    text = "".join(f"{line}\n" for line in lines)
    subprocess.run(words, input=text, text=True, check=True, capture_output=True)
    return time.monotonic() - began


def table(loads: dict[int, list[Load]], speeds: Sequence[float]) -> str:
    """Return the table: medians over the rounds, the speed as a share of that of translate."""
    lines = [
        "| clients | requests/s | p50 ms | p95 ms | p99 ms | words/s | of translate |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for clients, rounds in loads.items():
        times = [f"{median(one.time(share) for one in rounds):,.0f}" for share in (0.5, 0.95, 0.99)]
        speed = median(one.words for one in rounds)
        share = median(one.words / other for one, other in zip(rounds, speeds, strict=True))
        rate = f"{median(one.rate for one in rounds):,.1f}"
        cells = [str(clients), rate, *times, f"{speed:,.0f}", f"{share:.0%}"]
        lines.append(f"| {' | '.join(cells)} |")
    lines.append(f"| translate | | | | | {median(speeds):,.0f} | 100% |")
    return "\n".join(lines)


async def in_turns(options: argparse.Namespace, server: Server) -> str:
    """Measure the server and translate, in turns."""
    lines = [line for line in options.lines.read_text(encoding="utf-8").splitlines() if line]
    requests = await made(server.port, lines, options.together)
    words = sum(count for _, count in requests)
    await load(server.port, requests, max(options.clients), options.seconds / 4)  # to warm up
    loads: dict[int, list[Load]] = {clients: [] for clients in options.clients}
    speeds = []
    for _ in range(options.rounds):
        for clients in options.clients:
            loads[clients].append(await load(server.port, requests, clients, options.seconds))
        start = offline(options.run, lines[:1], options.shared)
        speeds.append(words / max(0.001, offline(options.run, lines, options.shared) - start))
    every = Load([answer for several in loads.values() for x in several for answer in x.answers], 1)
    return f"{table(loads, speeds)}\n\nanswers: {every.statuses}"


async def made(port: int, lines: Sequence[str], together: int) -> list[tuple[bytes, int]]:
    """Return the body of a request for so many lines each, and how many words it has."""
    languages = await direction(port)
    texts = ["\n".join(lines[at : at + together]) for at in range(0, len(lines), together)]
    return [(json.dumps({"q": text, **languages}).encode(), len(text.split())) for text in texts]


async def at_length(options: argparse.Namespace, server: Server) -> str:
    """Go on for minutes; watch the memory, and end a worker."""
    lines = [line for line in options.lines.read_text(encoding="utf-8").splitlines() if line]
    requests = await made(server.port, lines, options.together)
    seconds, clients = 60 * options.minutes, max(options.clients)
    samples: list[float] = []
    watching = asyncio.create_task(memories(server, samples))
    killing = asyncio.create_task(kill(server, seconds / 3)) if options.kill else None
    found = await load(server.port, requests, clients, seconds)
    watching.cancel()
    first = samples[: max(1, len(samples) // 10)]
    said = [
        f"{clients} clients for {options.minutes:g} minutes: {found.rate:,.1f} requests/s, "
        f"p99 {found.time(0.99):,.0f} ms, {found.words:,.0f} words/s; answers: {found.statuses}",
        f"memory of all processes: {median(first):,.0f} MB in the first tenth, "
        f"{median(samples[-len(first) :]):,.0f} MB in the last, {max(samples):,.0f} MB at most",
    ]
    if killing:
        said.append(f"kill -9 of a worker: all translate again after {await killing:.1f} s")
    return "\n".join(said)


def main(arguments: Sequence[str]) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="run folder")
    parser.add_argument("lines", type=Path, help="raw lines of its source language")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--together", type=int, default=1, help="lines of a request")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="the table has their medians")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--int8", action="store_true", help="of the server and of translate")
    parser.add_argument("--minutes", type=float, default=0.0, help="watch the memory for so long")
    parser.add_argument("--kill", action="store_true", help="end a worker while it is watched")
    options = parser.parse_args(arguments)
    options.shared = ["--workers", str(options.workers), *["--int8"] * options.int8]
    with served(options.run, options.shared) as server:
        if options.rounds:
            print(asyncio.run(in_turns(options, server)), flush=True)  # noqa: T201
        if options.minutes:
            print(asyncio.run(at_length(options, server)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
