"""Standard streams that the caller closed, as cron jobs and daemons do."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("tokenize --tokenizer none <&-", (0, "", "")),  # no input
        ("--version >&-", (1, "", "nmtflex: error: standard output is closed\n")),
        ("--version 2>&-", (0, "nmtflex", "")),
        ("--nonsense 2>&-", (2, "", "")),
        ("translate x <&- >&-", (1, "", "nmtflex: error: x: no such run folder\n")),
    ],
)
def test_it_ends_without_a_traceback(arguments, expected):
    line = f"{sys.executable} -m nmtflex {arguments}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.partition(" ")[0], done.stderr) == expected
