"""What a training holds in memory: no compiler of PyTorch's, and no more with time."""

from __future__ import annotations

import subprocess
import sys

import pytest
from small_trainings import SMALL

pytestmark = pytest.mark.integration

TRAINING = """
import sys
from pathlib import Path
from nmtflex.cli.app import main
from nmtflex.training import loop
held, step = [], loop.Trainer._step
def watched(*arguments):
    if len(held) % 20 == 0:
        loop.give_back()
    held.append(int(Path("/proc/self/statm").read_text().split()[1]))
    return step(*arguments)
loop.Trainer._step = watched
code = main()
print(sorted({"torch._dynamo", "sympy", "triton"} & set(sys.modules)))
print(*held)
sys.exit(code)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_stays_flat_and_no_compiler_is_imported(prepared, tmp_path):
    options = ["--run", tmp_path / "run", *SMALL, "--dtype", "bfloat16"]
    command = ["train", prepared, *options, "--updates", 140]
    program = [sys.executable, "-c", TRAINING, *map(str, command)]
    done = subprocess.run(program, check=True, capture_output=True, text=True)
    *_, imported, pages = done.stdout.splitlines()
    assert imported == "[]"
    held = [int(word) for word in pages.split()]
    assert len(held) == 140
    assert max(held[80:]) < 1.05 * max(held[60:80])
