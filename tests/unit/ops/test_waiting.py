"""Threads wait asleep while the machine is busy, and results do not change."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
import torch

from nmtflex.ops import waiting
from nmtflex.workers import usable_cores

pytestmark = pytest.mark.skipif(not waiting.TASKS.is_dir(), reason="needs Linux's /proc")


class FakeCrowd:
    def __init__(self):
        self.left = False

    def leave(self):
        self.left = True


@pytest.fixture
def watcher(monkeypatch):
    monkeypatch.setattr(waiting, "Crowd", FakeCrowd)
    return waiting.Watcher()


def test_a_busy_machine_brings_a_crowd_and_a_quiet_one_sends_it_away(watcher):
    watcher.look(0.1)
    assert watcher.crowd is None
    watcher.look(0.8)
    crowd = watcher.crowd
    assert crowd is not None
    for _ in range(waiting.CALM - 1):
        watcher.look(0.0)
    watcher.look(0.5)  # not for long enough
    for _ in range(waiting.CALM - 1):
        watcher.look(0.0)
    assert watcher.crowd is crowd
    assert not crowd.left
    watcher.look(0.0)
    assert crowd.left
    assert watcher.crowd is None


def test_a_middling_load_changes_nothing(watcher):
    between = (waiting.BUSY + waiting.QUIET) / 2
    for _ in range(3 * waiting.CALM):
        watcher.look(between)
    assert watcher.crowd is None
    watcher.look(1.0)
    for _ in range(3 * waiting.CALM):
        watcher.look(between)
    assert watcher.crowd is not None


def wait_until(condition):
    deadline = time.monotonic() + 900
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_waiting_for_a_core_is_counted():
    program = "while True: pass"
    before = waiting.kept_waiting()
    neighbours = [
        subprocess.Popen([sys.executable, "-c", program]) for _ in range(2 * usable_cores())
    ]
    try:

        def kept_waiting():
            sum(range(100_000))
            return waiting.kept_waiting() > before + 0.05

        wait_until(kept_waiting)
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()


PROGRAM = """
import os, time
import torch
from nmtflex.ops import threads, waiting
torch.set_num_threads(2)
def tasks():
    return len(os.listdir(waiting.TASKS))
torch.zeros(1 << 20).add_(1)
x = torch.randn(300, 300, generator=torch.Generator().manual_seed(1))
alone, before = x @ x, tasks()
crowd = waiting.Crowd()
while tasks() <= before + len(crowd.helpers):
    time.sleep(0.01)
print(torch.equal(x @ x, alone))
crowd.leave()
while tasks() > before + 1:  # a team of numba's may stay
    time.sleep(0.01)
print(torch.equal(x @ x, alone))
"""


def test_a_crowd_brings_its_teams_and_takes_them_away():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True, timeout=900
    )
    assert done.stdout.split() == ["True", "True"]


LAST_MOMENT = """
import threading
import torch
from nmtflex.ops import waiting
torch.set_num_threads(2)
waiting.usable_cores, waiting.INTERVAL, waiting.BUSY = lambda: 2, 0.001, -1
waiting.watch()
[watcher] = [one for one in threading.enumerate() if isinstance(one, waiting.Watcher)]
while watcher.crowd is None:
    pass
"""


@pytest.mark.slow
def test_a_program_may_end_while_a_crowd_comes():
    """A thread inside PyTorch aborts the process when Python shuts down."""
    done = subprocess.run(
        [sys.executable, "-c", LAST_MOMENT], check=False, capture_output=True, timeout=900
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_one_thread_needs_no_watcher(monkeypatch):
    started = []
    monkeypatch.setattr(waiting.Watcher, "start", lambda _: started.append(1))
    before = torch.get_num_threads()
    for team, expected in ((1, 0), (max(2, usable_cores()), 1)):
        torch.set_num_threads(team)
        waiting.watch.cache_clear()
        waiting.watch()
        assert len(started) == expected
    torch.set_num_threads(before)
    waiting.watch.cache_clear()


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_crowd_of_a_team_that_has_shrunk_to_one_thread(monkeypatch, one_thread):
    monkeypatch.setattr(waiting.Crowd, "_stay", lambda _: None)
    assert len(waiting.Crowd().helpers) == max(1, usable_cores() - 1)
