"""Workers that die or stand still, clients that leave, and an end that answers what has begun.

A worker that is stopped by SIGSTOP keeps what it was given, so nothing depends on speed.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from served import Served, until

pytestmark = pytest.mark.integration

HELLO = {"q": "I sent a letter .", "source": "en", "target": "ja"}


@pytest.fixture(scope="module")
def pair(english):
    """Return a server with two workers and a short queue."""
    with Served(english, "--workers", 2, "--queue-limit", 3) as served:
        yield served


@pytest.fixture
def sender():
    with ThreadPoolExecutor(8) as threads:
        yield threads


def ask(server, **fields) -> httpx.Response:
    """Send a request over a connection of its own."""
    return httpx.post(f"http://127.0.0.1:{server.port}/translate", json=HELLO | fields, timeout=300)


def busy(server, sender, workers):
    """Stop workers, and give each of them a sentence; return the answers to come."""
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)
    answers = []
    for number, _ in enumerate(workers, start=1):
        answers.append(sender.submit(ask, server, q="Run !"))
        server.until("nmtflex_requests_in_flight", lambda found, n=number: found == n + 1)
        server.until("nmtflex_sentences_waiting", lambda found: found == 0)
    return answers


def test_a_killed_worker_costs_nobody_the_answer(pair, sender):
    """One is killed with a sentence in it, while the other translates for everybody."""
    expected = pair.translated(HELLO["q"])
    workers = pair.workers()
    held = busy(pair, sender, workers)
    os.kill(workers[1], signal.SIGCONT)
    until(lambda: any(answer.done() for answer in held), "one of them answers")
    os.kill(workers[0], signal.SIGKILL)
    answers = list(sender.map(lambda _: ask(pair), range(3)))
    assert [answer.json()["translatedText"] for answer in answers] == 3 * [expected]
    assert [answer.result().status_code for answer in held] == [200, 200]  # one was tried again
    until(lambda: pair.metric("nmtflex_workers") == 2, "two workers")
    assert pair.metric("nmtflex_worker_restarts") >= 1
    assert pair.get("/health").status_code == 200


@pytest.mark.slow
def test_a_worker_that_dies_idle_is_back_without_being_asked(pair):
    restarts = pair.metric("nmtflex_worker_restarts")
    os.kill(pair.workers()[0], signal.SIGKILL)
    pair.until("nmtflex_worker_restarts", lambda number: number == restarts + 1)
    pair.until("nmtflex_workers", lambda number: number == 2)
    assert pair.translated("Run !")


def test_too_much_waiting_is_429_and_what_is_cancelled_costs_nothing(pair, sender):
    pair.until("nmtflex_workers", lambda number: number == 2)
    held = busy(pair, sender, pair.workers())
    done = pair.metric("nmtflex_sentences")
    patient = sender.submit(ask, pair)
    pair.until("nmtflex_sentences_waiting", lambda number: number == 1)
    body = b"q=Go!%20Go!%20Go!&source=en&target=ja"
    head = (
        b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", pair.port)) as leaving:
        leaving.sendall(head % len(body) + body)
        pair.until("nmtflex_sentences_waiting", lambda number: number == 4)
        refused = ask(pair)
        assert refused.status_code == 429
        assert refused.json()["error"].startswith("Slowdown: 4 sentences are waiting")
        assert int(refused.headers["retry-after"]) > 0
    pair.until("nmtflex_requests_in_flight", lambda number: number == 4)
    for worker in pair.workers():
        os.kill(worker, signal.SIGCONT)
    assert [answer.result().status_code for answer in [*held, patient]] == [200, 200, 200]
    assert pair.metric("nmtflex_sentences") == done + 3  # none of the three that were cancelled


@pytest.mark.slow
def test_one_client_with_much_to_translate_does_not_hold_up_another(pair, sender):
    pair.until("nmtflex_workers", lambda number: number == 2)
    long = sender.submit(ask, pair, q=400 * ["I sent a letter to her last Sunday ."])
    pair.until("nmtflex_sentences_waiting", lambda number: number > 0)
    assert ask(pair, q="Run !").status_code in (200, 429)
    assert long.result().status_code == 200


@pytest.mark.parametrize("everybody", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_sigterm_drains(english, sender, everybody):
    """A request in a worker gets its answer, also where all processes are told to end."""
    with Served(english, "--workers", 1) as server:
        expected = server.translated(HELLO["q"])
        (held,) = busy(server, sender, server.workers())
        waiting = sender.submit(ask, server)
        server.until("nmtflex_sentences_waiting", lambda number: number == 1)
        workers = server.workers()
        for number in [server.process.pid, *(workers if everybody else [])]:
            os.kill(number, signal.SIGTERM)
        until(lambda: refuses(server.port), "new connections are refused")
        assert server.process.poll() is None
        os.kill(workers[0], signal.SIGCONT)
        assert held.result().status_code == 200
        assert waiting.result().json() == {"translatedText": expected}
        assert server.process.wait(300) == 0
        assert not [line for line in server.said if "Traceback" in line]
        until(lambda: not alive(workers[0]), "the worker ends")


def refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return True
    return False


def alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_ctrl_c_ends_it(english):
    with Served(english, "--workers", 1) as server:
        assert server.stop(signal.SIGINT) == 0


@pytest.mark.slow
def test_a_worker_outlives_the_server_by_a_moment_only(english):
    with Served(english, "--workers", 1) as server:
        (worker,) = server.workers()
        server.process.kill()
        until(lambda: not alive(worker), "the worker ends")


@pytest.mark.slow
def test_under_load_killed_workers_come_back(pair, sender):
    """kill -9 again and again while clients ask; recipes/load_test.py measures how soon."""
    statuses, stop = [], threading.Event()

    def client() -> None:
        while not stop.is_set():
            statuses.append(ask(pair).status_code)

    clients = [sender.submit(client) for _ in range(3)]  # the queue takes no more
    try:
        for _ in range(3):
            pair.until("nmtflex_workers", lambda number: number == 2)
            restarts = pair.metric("nmtflex_worker_restarts")
            os.kill(pair.workers()[0], signal.SIGKILL)
            pair.until("nmtflex_worker_restarts", lambda number, n=restarts: number == n + 1)
    finally:
        stop.set()
    for one in clients:
        one.result()
    assert set(statuses) <= {200, 503}
    assert statuses.count(200) > 10
