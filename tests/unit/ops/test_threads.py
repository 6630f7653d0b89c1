"""numba's own number of threads belongs to the application."""

from __future__ import annotations

import numba
import pytest
import torch

from nmtflex.ops import threads
from nmtflex.ops.dispatch import steady_threads


@pytest.fixture(autouse=True)
def _two_threads():
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("numba has one thread only")
    before, of_torch = numba.get_num_threads(), torch.get_num_threads()
    numba.set_num_threads(2)
    torch.set_num_threads(2)
    yield
    numba.set_num_threads(before)
    torch.set_num_threads(of_torch)


def seen(wanted):
    """Run a loop that notes how many threads numba has."""
    found = []
    threads.run(lambda: found.append(numba.get_num_threads()), wanted)
    return found[0]


def test_a_loop_has_the_threads_it_asks_for_and_leaves_the_setting():
    for wanted in (1, 2):
        assert seen(wanted) == wanted
        assert numba.get_num_threads() == 2


@pytest.mark.parametrize("block", [threads.keep_threads, steady_threads])
def test_so_do_many_loops_inside_a_block(block):
    with block():
        assert [seen(wanted) for wanted in (1, 1, 2, 1)] == [1, 1, 2, 1]
        with block():
            assert [seen(wanted) for wanted in (2, 1)] == [2, 1]
        assert seen(1) == 1
    assert numba.get_num_threads() == 2


def test_a_block_that_fails_leaves_the_setting():
    def fail():
        raise KeyError("loop")

    def both():
        seen(1)
        threads.run(fail, 2)

    with pytest.raises(KeyError, match="loop"), threads.keep_threads():
        both()
    assert numba.get_num_threads() == 2
    assert seen(1) == 1
    assert numba.get_num_threads() == 2
