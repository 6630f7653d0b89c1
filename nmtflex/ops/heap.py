"""Memory that libraries keep: what can be given back, and what makes them keep less.

oneDNN compiles a product for each number of rows that it meets, and keeps the code, 0.3 MB each, as
long as the process lives. A batch has any number of words, so a training would fill gigabytes. In
its large products the rows are therefore rounded up (``rounded``). Of the objects around the code
oneDNN keeps the 1,024 last used ones; ``keep_less`` makes these fewer. And the C library keeps
what is freed between pieces in use, until ``give_back`` is called.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

from torch import Tensor
from torch.nn import functional

ROWS = 64  # rows are rounded up to a multiple; fewer rows than that are left as they are
PRIMITIVES = "64"  # that oneDNN keeps; a step of a model has some ten


def rounded(rows: Tensor) -> Tensor:
    """Add rows of zeros to [M, C] up to the next multiple of ``ROWS``, on the CPU."""
    missing = -len(rows) % ROWS
    if not missing or len(rows) < ROWS or rows.device.type != "cpu":
        return rows
    return functional.pad(rows, (0, 0, 0, missing))


def keep_less() -> None:
    """Have oneDNN keep few objects, unless the environment says how many; before its first one."""
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", PRIMITIVES)


def give_back() -> None:
    """Give free memory back to the system, where the C library can (GNU's)."""
    trim: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
