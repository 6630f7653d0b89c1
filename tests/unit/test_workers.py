from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import pytest

from nmtflex.errors import DataError
from nmtflex.workers import ordered_map


def double(item: int) -> int:
    return 2 * item


def die(_item: int) -> None:
    os._exit(9)


def complain(item: int) -> None:
    raise DataError(f"item {item}")


def setup(function):
    return function


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order(workers):
    assert list(ordered_map(partial(setup, double), range(40), workers)) == list(range(0, 80, 2))


@pytest.mark.parametrize("workers", [1, 2])
def test_items_are_read_no_faster_than_results_are_taken(workers):
    read = []
    items = (read.append(item) or item for item in range(1000))
    results = ordered_map(partial(setup, double), items, workers)
    assert [next(results) for _ in range(3)] == [0, 2, 4]
    assert len(read) <= 3 + 2 * workers
    results.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_a_worker_arrives(workers):
    with pytest.raises(DataError, match="item 3"):
        list(ordered_map(partial(setup, complain), [3, 4], workers))


@pytest.mark.parametrize("workers", [1, 2])
def test_results_of_what_was_read_come_before_a_fault_in_reading(workers):
    def items():
        yield 1
        yield 2
        raise DataError("line 3")

    results = ordered_map(partial(setup, double), items(), workers)
    assert [next(results), next(results)] == [2, 4]
    with pytest.raises(DataError, match="line 3"):
        next(results)


@pytest.mark.parametrize("spawn", [False, True])
def test_either_way_to_start_a_process(spawn):
    assert list(ordered_map(partial(setup, abs), [-1, 2], 2, spawn=spawn)) == [1, 2]


def test_workers_end_with_a_parent_that_is_killed():
    script = (
        "from functools import partial\n"
        "from time import sleep\n"
        "from nmtflex.workers import ordered_map\n"
        "def setup(): return sleep\n"
        "if __name__ == '__main__':\n"
        "    for _ in ordered_map(setup, iter(lambda: 0.01, None), 2): print(flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout.readline() == b"\n"
        parent.kill()
        # The workers hold the pipe open for as long as they live.
        assert parent.communicate(timeout=900)[0].strip() == b""


def test_a_worker_that_dies_is_reported():
    with pytest.raises(DataError, match=r"one of 2 worker processes died.*fewer --workers"):
        list(ordered_map(partial(setup, die), [1], 2))


@pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux alone")
def test_a_fork_whatever_is_the_default():
    """Python 3.14 starts processes in another way, which pickles ``setup``."""
    program = (
        "import multiprocessing; multiprocessing.set_start_method('forkserver');"
        "from nmtflex.workers import ordered_map;"
        "print(*ordered_map(lambda: abs, [-1, 2], 2))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout == "1 2\n"
