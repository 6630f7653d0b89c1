"""Worker processes: an ordered map with few items in flight, and the number of usable cores."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from nmtflex.errors import DataError, NmtflexError

Item = TypeVar("Item")
Result = TypeVar("Result")

# What Python 3.14 no longer does by default; elsewhere than on Linux a fork is not safe.
FORK = "fork" if sys.platform == "linux" else None

_function: Callable[[Any], Any]  # of this worker process


def usable_cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def default_threads() -> int:
    """Return OMP_NUM_THREADS if it is set, else one thread per usable core."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdecimal() and int(asked) else usable_cores()


def ordered_map(
    setup: Callable[[], Callable[[Item], Result]],
    items: Iterable[Item],
    workers: int = 1,
    spawn: bool = False,
) -> Iterator[Result]:
    """Yield ``setup()(item)`` for each item, in order, for any number of processes.

    If reading an item raises a ``NmtflexError``, the results of earlier items come first.

    Args:
        setup: Makes the function, once per process; only ``setup`` is pickled.
        items: Read only as fast as results are taken.
        workers: Processes; with one, everything runs in this process.
        spawn: Spawn them, since threads that run here would not survive a fork.

    Raises:
        DataError: A process was killed, most likely because memory ran out.
    """
    if workers == 1:
        yield from map(setup(), items)
        return
    context = multiprocessing.get_context("spawn" if spawn else FORK)
    pool = ProcessPoolExecutor(workers, context, initializer=_start, initargs=(setup,))
    waiting: deque[Future[Result]] = deque()
    faults: list[NmtflexError] = []
    try:
        for item in _until_fault(items, faults):
            waiting.append(pool.submit(_call, item))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise DataError(
            f"one of {workers} worker processes died, perhaps out of memory; use fewer --workers"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)
    if faults:
        raise faults[0]


def _until_fault(items: Iterable[Item], faults: list[NmtflexError]) -> Iterator[Item]:
    """Yield items; an error in reading them ends the items, and is kept."""
    try:
        yield from items
    except NmtflexError as fault:
        faults.append(fault)


def _start(setup: Callable[[], Callable[[Any], Any]]) -> None:
    global _function  # noqa: PLW0603
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_follow_parent, daemon=True).start()
    _function = setup()


def _follow_parent() -> None:
    """End when the parent process ends, even if it was killed."""
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


def _call(item: Any) -> Any:
    return _function(item)
