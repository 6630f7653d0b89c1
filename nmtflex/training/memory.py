"""Not enough memory: how it is told from other errors, and how much there is."""

from __future__ import annotations

import os
from pathlib import Path

import torch

WORDS = (
    "can't allocate memory",  # torch's allocator of the CPU
    "out of memory",  # of CUDA, from where it is no OutOfMemoryError
    "CUBLAS_STATUS_ALLOC_FAILED",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory was asked for and there was none."""
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(word in str(error) for word in WORDS)


def release_memory(device: torch.device) -> None:
    """Give what a failed attempt left back to the device."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


def available_memory() -> int:
    """Return the bytes that this process may still take on the CPU."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    words = [line.split() for line in _lines("/proc/meminfo")]
    found += [1024 * int(count) for name, count, *_ in words if name == "MemAvailable:"]
    limit, used = (_lines(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    if limit and used and limit[0].isdecimal():  # "max" where there is no limit
        found.append(int(limit[0]) - int(used[0]))
    return max(0, min(found))


def _lines(path: str) -> list[str]:
    """Return the lines of a file of the system; none where there is no such file."""
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
