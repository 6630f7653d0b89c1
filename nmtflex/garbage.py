"""Python's garbage collector, which has nothing to find while a program starts.

Importing torch and numba makes a million objects. All of them stay, but the collector goes through
them again and again, which takes a fifth of the time until the first translation.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

SELDOM = 10_000  # new objects that stay, after which a command collects; Python's own number is 700


def collect_seldom() -> None:
    """Let the collector of a process that is all ours run seldom."""
    gc.set_threshold(SELDOM, *gc.get_threshold()[1:])


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Keep the collector of any process from running inside the block."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
