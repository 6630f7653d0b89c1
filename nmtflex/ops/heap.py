"""Memory that libraries keep: how to free it, and how to make them keep less.

oneDNN compiles a product for each number of rows, and keeps the 1,024 used last, of 0.1 MB and
more each. A batch has any number of words, so a training would fill that and go on compiling.
So the number of rows of large products is rounded up (``rounded``). Keeping fewer would save little
memory and cost speed: compiling one for AMX takes a millisecond, longer than most products take.
The C library returns large blocks at once, though the next update asks for the same ones
(``reuse_large_blocks``), and keeps small ones until ``give_back`` is called.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import torch
from torch import Tensor

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h
LARGEST = 1 << 30  # bytes of a block that is reused
ROWS = 64  # rows are rounded up to a multiple; fewer rows stay as they are


def rounded(rows: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Add rows of zeros to [M, C] up to the next multiple of ``ROWS``, on the CPU.

    Args:
        rows: [M, C].
        dtype: Format of the result, if it is another one.
    """
    dtype = dtype or rows.dtype
    missing = -len(rows) % ROWS
    if len(rows) < ROWS or not missing or rows.device.type != "cpu":
        return rows.to(dtype)
    room = rows.new_empty(len(rows) + missing, *rows.shape[1:], dtype=dtype)
    room[: len(rows)] = rows
    room[len(rows) :] = 0
    return room


def reuse_large_blocks() -> None:
    """Let the C library (GNU's) keep freed blocks until ``give_back``, in the whole process.

    Otherwise each large tensor of each update gets new pages, which the system fills with zeros.
    """
    option: Callable[[int, int], int] | None = getattr(ctypes.CDLL(None), "mallopt", None)
    if option is not None:
        option(M_MMAP_THRESHOLD, LARGEST)
        option(M_TRIM_THRESHOLD, LARGEST)


def give_back() -> None:
    """Return free memory to the system, if the C library can (GNU's)."""
    trim: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
