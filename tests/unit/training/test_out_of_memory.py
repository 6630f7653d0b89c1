"""Which errors are of memory, and how much of it there is."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from no_memory import ERRORS

from nmtflex.training.memory import available_memory, is_out_of_memory


def test_which_errors_are_of_memory():
    assert all(is_out_of_memory(error) for error in ERRORS)
    assert is_out_of_memory(RuntimeError("CUDA error: out of memory"))
    assert is_out_of_memory(RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling ..."))
    assert is_out_of_memory(RuntimeError("std::bad_alloc"))
    assert is_out_of_memory(OSError(errno.ENOMEM, "Cannot allocate memory"))
    assert not is_out_of_memory(OSError(errno.ENOSPC, "No space left on device"))
    # A shape or format that oneDNN does not know; less of it would not help.
    lacking = "could not create a primitive descriptor for a matmul primitive"
    assert not is_out_of_memory(RuntimeError(lacking))
    assert not is_out_of_memory(ValueError("can't allocate memory"))
    with pytest.raises(RuntimeError) as raised:
        torch.empty(1 << 60, dtype=torch.uint8)  # what this torch says, too
    assert is_out_of_memory(raised.value)


def test_there_is_some_memory():
    assert 1 << 20 < available_memory() < 1 << 60


def test_memory_is_what_a_limit_of_addresses_leaves():
    code = (
        "import resource; from nmtflex.training.memory import available_memory as free;"
        "pages = int(open('/proc/self/statm').read().split()[0]);"
        "limit = pages * resource.getpagesize() + (100 << 20);"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit)); print(free())"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert 0 < int(told.stdout) <= 100 << 20


@pytest.mark.parametrize("limited", ["", "outer", "outer/inner"])
def test_memory_is_what_the_control_groups_leave(tmp_path, limited):
    groups = tmp_path / "sys" / "fs" / "cgroup"
    for group in ("", "outer", "outer/inner"):
        (groups / group).mkdir(exist_ok=True, parents=True)
        (groups / group / "memory.max").write_text("max\n")
        (groups / group / "memory.current").write_text("3000000\n")
    (groups / limited / "memory.max").write_text("5000000\n")
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "cgroup").write_text("0::/outer/inner\n")
    assert available_memory(tmp_path) == 2_000_000


def test_memory_is_what_the_system_says_is_free(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 7 kB\n")
    assert available_memory(tmp_path) == 7 * 1024
    assert available_memory(Path("/")) > 1 << 20
