"""While a process compiles a piece of code, others wait, for a while."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from nmtflex.ops.compile_lock import lock, unlock

HOLD = """
import sys
from pathlib import Path
from nmtflex.ops.compile_lock import lock, unlock
lock(Path(sys.argv[1]), "code")
print("locked", flush=True)
if sys.stdin.readline() == "unlock\\n":
    unlock(Path(sys.argv[1]), "code")
    print("unlocked", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(tmp_path):
    """A process that holds the lock of "code"."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def waited(folder: Path, name: str) -> bool:
    """Whether the lock of a piece of code was not to be had for the time given."""
    patience = 0.3
    begin = time.monotonic()
    assert lock(folder, name, patience)
    return time.monotonic() - begin >= patience


def test_a_process_waits_for_the_code_that_another_one_compiles(holder, tmp_path):
    assert waited(tmp_path, "code")
    assert not waited(tmp_path, "other code")
    unlock(tmp_path, "code")  # not ours
    assert waited(tmp_path, "code")


def test_it_goes_on_when_the_other_one_is_done(holder, tmp_path):
    holder.stdin.write("unlock\n")
    holder.stdin.flush()
    assert holder.stdout.readline() == "unlocked\n"
    assert not waited(tmp_path, "code")


def test_it_goes_on_when_the_other_one_dies(holder, tmp_path):
    holder.kill()
    holder.wait()
    assert not waited(tmp_path, "code")


def test_a_folder_that_cannot_be_made_is_not_waited_for(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    assert not lock(file, "code")
    unlock(file, "code")
