"""Recognising errors of exhausted memory, and measuring free memory."""

from __future__ import annotations

import errno
import os
import re
import resource
from pathlib import Path

import torch

WORDS = re.compile(
    "can't allocate memory"  # torch's allocator of the CPU
    "|bad_alloc"  # C++'s own
    # oneDNN's only message for it; one about a primitive descriptor means a bad shape.
    "|could not create a (primitive(?! descriptor)|memory object)"
    "|out of memory"  # CUDA's, if it is not an OutOfMemoryError
    "|CUBLAS_STATUS_ALLOC_FAILED"
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out."""
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and WORDS.search(str(error)) is not None


def release_memory(device: torch.device) -> None:
    """Return the memory of a failed attempt to the device."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


def free_memory(device: torch.device) -> int:
    """Return the bytes that this process may still take on a device."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return available_memory()


def available_memory(root: Path = Path("/")) -> int:
    """Return the bytes that this process may still take on the CPU.

    The minimum of the machine's memory, the limits of its control groups (version 2, including
    parents) and the address space left by ``ulimit -v``. ``root`` has the system's files.
    """
    page = os.sysconf("SC_PAGE_SIZE")
    found = [page * os.sysconf("SC_PHYS_PAGES")]
    words = [line.split() for line in _lines(root / "proc/meminfo")]
    found += [1024 * int(count) for name, count, *_ in words if name == "MemAvailable:"]
    for group in _control_groups(root):
        limit, used = (_lines(group / f"memory.{name}") for name in ("max", "current"))
        if limit and used and limit[0].isdecimal():  # "max" if there is no limit
            found.append(int(limit[0]) - int(used[0]))
    addresses, _ = resource.getrlimit(resource.RLIMIT_AS)
    taken = _lines(root / "proc/self/statm")
    if addresses != resource.RLIM_INFINITY and taken:
        found.append(addresses - page * int(taken[0].split()[0]))
    return max(0, min(found))


def _control_groups(root: Path) -> list[Path]:
    """Return the folders of this process's control group and of its parents."""
    top, lines = root / "sys/fs/cgroup", _lines(root / "proc/self/cgroup")
    names = [line.removeprefix("0::/") for line in lines if line[:2] == "0:"]
    own = top / (names[0] if names else "")
    return [top, *(path for path in (own, *own.parents) if top in path.parents)]


def _lines(path: Path) -> list[str]:
    """Return the lines of a system file; none if there is no such file."""
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
