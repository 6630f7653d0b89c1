"""Functions inside of a loop are compiled once, where they end up."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import numpy as np
import pytest
from numba import config, njit, prange
from numba.core.dispatcher import Dispatcher

from nmtflex import corpus, ops
from nmtflex.ops.code_cache import CodeCache
from nmtflex.ops.compiled import SUMS, compiled, entry


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))


def inner_function():
    @compiled(**SUMS)
    def inner(x: float) -> float:
        total = 0.0
        for i in range(10):
            total += x * i
        return total

    return inner


def is_optimised(function) -> bool:
    """Return whether the sum is the product that it amounts to, x times 0 + 1 + ... + 9."""
    return "4.500000e+01" in "".join(function.inspect_llvm().values())


def test_what_is_inside_is_left_to_the_entry():
    inner = inner_function()

    @entry()
    def outer(x: float) -> float:
        return inner(x) + 1

    assert outer(2.0) == 91
    assert not is_optimised(inner)
    assert is_optimised(outer)
    with pytest.raises(TypeError):  # there is no machine code of it
        inner(2.0)


def test_elsewhere_numba_does_what_it_always_does():
    inner = inner_function()

    @njit(**SUMS)
    def of_another_package(x: float) -> float:
        return inner(x) + 1

    assert of_another_package(2.0) == 91
    assert is_optimised(inner)
    assert inner(2.0) == 90


def test_a_parallel_loop_runs_its_own_versions():
    inner = inner_function()

    @entry(parallel=True)
    def loop(x):
        for i in prange(len(x)):
            x[i] = inner(x[i])

    x = np.arange(3.0)
    loop(x)
    assert x.tolist() == [0, 45, 90]
    assert is_optimised(loop)
    # Weak functions would be those of whatever was compiled first.
    assert "_odr " not in "".join(loop.inspect_llvm().values())


def test_entries_are_called_by_python_only():
    """Inside of another function one has no machine code of its own to keep on disk."""
    loops = []
    for package in (corpus, ops):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.endswith(("loops", "sorting")):
                found = vars(importlib.import_module(module.name)).values()
                loops += [one for one in found if isinstance(one, Dispatcher)]
    entries = {one for one in loops if isinstance(one._cache, CodeCache)}
    assert len(entries) > 30
    for loop in loops:
        known = inspect.getclosurevars(loop.py_func)
        assert entries.isdisjoint(
            one for one in known.globals.values() if isinstance(one, Dispatcher)
        )
