"""Commands in processes of their own, and what a signal does to them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from nmtflex.comparison import processes
from nmtflex.comparison.processes import Processes

SLEEP = "import time; print('begun', flush=True); time.sleep(600)"


@pytest.fixture
def python(monkeypatch):
    """Let a command be a program for Python."""
    start = subprocess.Popen

    def popen(words, **given):
        return start([sys.executable, "-c", words[3]], **given)

    monkeypatch.setattr(processes.subprocess, "Popen", popen)


def test_the_program_itself_is_called():
    run = Processes(options=["--version"])
    assert run([])[1].startswith("nmtflex ")
    assert Processes()(["trian"])[0] == 2


@pytest.mark.parametrize(("jobs", "threads"), [(1, 6), (2, 3), (4, 1), (9, 1)])
def test_they_share_the_cores(python, monkeypatch, jobs, threads):
    monkeypatch.setattr(processes, "default_threads", lambda: 6)
    program = "import os; print(os.environ['OMP_NUM_THREADS'])"
    assert Processes(jobs)([program]) == (0, f"{threads}\n")


def test_after_a_signal_the_running_ones_end_and_no_other_starts(python):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    found = []
    with Processes(2) as run:
        threads = [threading.Thread(target=lambda: found.append(run([SLEEP]))) for _ in range(2)]
        for thread in threads:
            thread.start()
        while len(run._children) < 2:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        for thread in threads:
            thread.join(60)
        assert [code for code, _ in found] == [-signal.SIGTERM] * 2
        assert run([SLEEP]) == (128 + signal.SIGTERM, "")
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_ctrl_c_is_left_to_the_commands(python):
    with Processes() as run:
        os.kill(os.getpid(), signal.SIGINT)  # a terminal sends it to the commands, too
        assert run([SLEEP]) == (128 + signal.SIGINT, "")
