"""The loops on the CPU: accuracy of their functions, determinism, memory."""

from __future__ import annotations

import platform
from pathlib import Path

import numba
import numpy as np
import pytest
import torch
from problems import make

from nmtflex.ops import threads
from nmtflex.ops.attend import Window, cpu, loops
from nmtflex.ops.compiled import EXACT


@numba.njit(**EXACT)
def apply_tanh(x, result):
    for i in range(x.shape[0]):
        result[i] = loops.tanh(x[i])


@numba.njit(**EXACT)
def apply_exp(x, result):
    for i in range(x.shape[0]):
        result[i] = loops.exp(x[i])


def computed(function, x):
    x = np.asarray(x, np.float32)
    result = np.empty_like(x)
    function(x, result)
    return x.astype(np.float64), result


def test_tanh_is_within_a_few_units_of_the_last_place():
    x, result = computed(apply_tanh, np.linspace(-12, 12, 200_001))
    assert np.abs(result - np.tanh(x)).max() < 5e-7
    assert np.abs(result).max() <= 1
    small = (np.abs(x) < 0.1) & (x != 0)
    assert np.abs(result[small] / np.tanh(x[small]) - 1).max() < 5e-7


def test_exp_is_within_a_few_units_of_the_last_place():
    x, result = computed(apply_exp, np.linspace(-87, 87, 200_001))
    assert np.abs(result / np.exp(x) - 1).max() < 2e-7


def test_functions_at_the_ends():
    ends = [0, np.inf, -np.inf, np.nan, 1e30, -1e30]
    _, tanh = computed(apply_tanh, ends)
    np.testing.assert_allclose(tanh, np.tanh(ends), rtol=3e-7)
    _, exp = computed(apply_exp, ends[:4])
    np.testing.assert_array_equal(exp, [1, np.inf, 0, np.nan])


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("numba was started with one thread")
    yield
    torch.set_num_threads(before)


def everything(problem):
    problem = problem.learning()
    source = cpu.make_source(problem.keys, problem.values, problem.lengths)
    first, second = (problem.attend_to(source, cpu) for _ in range(2))
    total = (first.context**2).sum() + (second.focus**2).sum()
    return [*first[:2], *second[:2], *torch.autograd.grad(total, problem.learnt())]


LARGE = {"lengths": (60, 50, 40), "keys": 64, "values": 64, "dtype": torch.float32}


def test_same_bits_in_two_runs():
    problem = make(rows=[0] * 30 + [2] * 10, damped=True, **LARGE)
    for part, other in zip(everything(problem), everything(problem), strict=True):
        assert torch.equal(part, other)


def test_same_bits_with_one_thread_and_with_two(two_threads, monkeypatch):
    monkeypatch.setattr(threads, "GRAIN", 1)  # so that the second thread is used
    problem = make(rows=[0] * 30 + [2] * 10, **LARGE)
    results = []
    for count in (1, 2):
        torch.set_num_threads(count)
        results.append(everything(problem))
    for part, other in zip(*results, strict=True):
        assert torch.equal(part, other)


def test_numba_keeps_its_own_number_of_threads(two_threads):
    before = numba.get_num_threads()
    torch.set_num_threads(1)
    make().attend(cpu)
    assert numba.get_num_threads() == before


@pytest.mark.skipif(platform.system() != "Linux", reason="needs /proc")
def test_memory_holds_no_tensor_of_all_hypotheses_positions_and_units():
    """One such tensor would take 1 GB; the source takes 8 MB, and what the answer needs 14."""
    lengths, count, size = (1024, 1024), 512, 512
    problem = make(lengths=lengths, keys=size, values=size, dtype=torch.float32)
    problem = problem._replace(
        query=torch.randn(count, size),
        rows=torch.arange(count) // 256,
        window=Window(torch.zeros(count).long(), torch.full((count,), 1024)),
        penalty=None,
    ).learning()
    before = peak_memory(reset=True)
    attended = problem.attend(cpu)
    torch.autograd.grad(attended.context.sum(), problem.learnt())
    assert peak_memory() - before < 100


def peak_memory(reset: bool = False) -> float:
    """The most memory since the last reset, in MB."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1000
