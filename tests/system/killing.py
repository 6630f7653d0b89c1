"""Runs nmtflex commands in forks of one process that has imported all of it, so that a start is
quick, and kills them.

    with Server() as server:
        process = server.start("train", "prepared", "--run", "run")
        process.kill_after(0.4)
        process.wait()
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

HEAVY = (
    "torch.utils.tensorboard",
    "nmtflex.figures.learning",
    "nmtflex.cli.train",
    "nmtflex.corpus.prepare",
    "nmtflex.ops.compiled",
    "nmtflex.training.metrics",
    "nmtflex.training.start",
)
WAIT = 600  # seconds; a machine may stand still meanwhile


class Ended(NamedTuple):
    code: int  # minus the signal where one ended it
    err: str
    seconds: float


class Command:
    """A command under way."""

    def __init__(self, server: Server, pid: int, err: Path) -> None:
        self.server = server
        self.pid = pid
        self.err = err
        self.began = time.monotonic()

    def kill_after(self, seconds: float) -> None:
        """Kill it after so long, unless it has ended."""
        time.sleep(max(0.0, self.began + seconds - time.monotonic()))
        # The server has not waited for it yet, so that no other process can have its number.
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> Ended:
        """Wait for its end."""
        self.server.say("wait")
        code = int(self.server.hear())
        return Ended(code, self.err.read_text(), time.monotonic() - self.began)


class Server:
    """A process that forks commands."""

    def __enter__(self) -> Server:
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.hear()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        self.process.wait(WAIT)
        self.process.stdout.close()

    def say(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        line = self.process.stdout.readline()
        assert line, "the server has died"
        return line

    def start(self, folder: Path, *arguments: object) -> Command:
        """Start a command, what it prints going to a file in ``folder``."""
        err = folder / "err.txt"
        self.say(json.dumps([str(err), *map(str, arguments)]))
        return Command(self, int(self.hear()), err)

    def run(self, folder: Path, *arguments: object) -> Ended:
        """Start a command and wait for its end."""
        return self.start(folder, *arguments).wait()


def serve() -> None:
    for module in HEAVY:
        importlib.import_module(module)
    from nmtflex.cli.app import main

    answers = os.fdopen(os.dup(1), "w")
    answers.write("ready\n")
    answers.flush()
    pid = 0
    for line in sys.stdin:
        if line.strip() == "wait":
            answers.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
            answers.flush()
            continue
        err, *arguments = json.loads(line)
        pid = os.fork()
        if not pid:
            handle = os.open(err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(handle, 1)
            os.dup2(handle, 2)
            code = 70
            try:
                code = main(arguments)
            finally:
                sys.stderr.flush()
                os._exit(code)
        answers.write(f"{pid}\n")
        answers.flush()


if __name__ == "__main__":
    serve()
