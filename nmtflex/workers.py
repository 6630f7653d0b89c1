"""Worker processes: a map in order with few items under way, and the cores there are for them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from nmtflex.errors import DataError, NmtflexError

Item = TypeVar("Item")
Result = TypeVar("Result")

_function: Callable[[Any], Any]  # of this worker process


def usable_cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def ordered_map(
    setup: Callable[[], Callable[[Item], Result]],
    items: Iterable[Item],
    workers: int = 1,
    spawn: bool = False,
) -> Iterator[Result]:
    """Yield ``setup()(item)`` for each item, in order, whatever the number of processes.

    Where reading an item fails with a ``NmtflexError``, the results of those before it come first.

    Args:
        setup: Makes the function, once a process; it is pickled, what it makes need not be.
        items: Read only as fast as results are taken.
        workers: Processes; with one, everything happens in this process.
        spawn: Start them from nothing, as threads that run here would not survive a fork.

    Raises:
        DataError: A process was killed, most likely for want of memory.
    """
    if workers == 1:
        yield from map(setup(), items)
        return
    context = multiprocessing.get_context("spawn" if spawn else None)
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
            f"one of {workers} worker processes died, perhaps for want of memory; "
            f"use fewer --workers"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)
    if faults:
        raise faults[0]


def _until_fault(items: Iterable[Item], faults: list[NmtflexError]) -> Iterator[Item]:
    """Yield items; a fault in reading them ends the items, and is kept."""
    try:
        yield from items
    except NmtflexError as fault:
        faults.append(fault)


def _start(setup: Callable[[], Callable[[Any], Any]]) -> None:
    global _function  # noqa: PLW0603
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent process's to answer
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_follow_parent, daemon=True).start()
    _function = setup()


def _follow_parent() -> None:
    """End with the parent process, even one that was killed; nobody else would end this one."""
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


def _call(item: Any) -> Any:
    return _function(item)
