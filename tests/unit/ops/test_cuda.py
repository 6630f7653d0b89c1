"""The Triton kernels: equal to the reference, cut into parts or not, and compiled for a GPU.

They run on a GPU, or in Triton's interpreter where there is none.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from problems import Problem, make

from nmtflex.errors import RunError
from nmtflex.ops import launch
from nmtflex.ops.attend import Penalty, Source, attend, make_source, reference
from nmtflex.ops.dispatch import implementation

pytest.importorskip("triton")

BEAM = [0, 0, 2]
SHAPES = {
    "training": {"windowed": False},
    "beam": {"rows": BEAM, "damped": True},
    "local": {"punished": False},
    "everything-dot": {"rows": BEAM, "damped": True, "additive": False},
}
WIDTHS = pytest.mark.parametrize("part", [None, 4], ids=["whole", "parts"])


def moved(problem: Problem, device: str) -> Problem:
    """The problem on the device where the kernels run."""

    def move(part):
        if isinstance(part, torch.Tensor):
            return part.to(device)
        if isinstance(part, tuple):
            return type(part)(*map(move, part))
        return part

    return move(problem)


@pytest.fixture
def cut(monkeypatch):
    """Cut windows into parts of so many positions; None leaves the usual size."""
    from nmtflex.ops.attend import cuda

    def apply(part: int | None) -> None:
        if part is not None:
            monkeypatch.setattr(cuda, "PART", part)

    return apply


def results(problem: Problem, chosen) -> list[torch.Tensor]:
    """Context, focus, weights, log_sum and all gradients."""
    learning = problem.learning()
    attended = learning.attend(chosen)
    found = [attended.context, attended.focus, attended.log_sum]
    torch.manual_seed(1)
    draw = [torch.randn(part.shape).to(part) for part in found]
    return [*attended, *torch.autograd.grad(found, learning.learnt(), draw)]


def assert_close(got, expected, tolerance: float) -> None:
    for part, other in zip(got, expected, strict=True):
        other = other.detach().to(part)
        scale = max(1.0, float(other.abs().max()))
        torch.testing.assert_close(part, other, rtol=tolerance, atol=tolerance * scale)


def exactly(problem: Problem) -> Problem:
    """The same numbers in float64."""
    return problem.with_learnt(*(part.double() for part in problem.learnt()))


@pytest.mark.sampled(3)
@WIDTHS
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["single", "double"])
def test_equals_the_reference(triton_device, cut, dtype, shape, part):
    cut(part)
    problem = moved(make(dtype=dtype, **SHAPES[shape]), triton_device)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    got = results(problem, implementation("attend", problem.keys.device))
    assert {part.dtype for part in got} == {dtype}
    assert_close(got, results(exactly(problem), reference), tolerance)


@pytest.mark.sampled(3)
@WIDTHS
@pytest.mark.parametrize("shape", SHAPES)
def test_bfloat16_is_read_and_everything_else_float32(triton_device, cut, shape, part):
    cut(part)
    problem = moved(make(dtype=torch.bfloat16, **SHAPES[shape]), triton_device)
    got = results(problem, implementation("attend", problem.keys.device))
    expected = results(exactly(problem), reference)
    rounding = 2.0**-8  # of what is handed over in bfloat16: the context and all gradients
    assert {part.dtype for part in got[1:4]} == {torch.float32}
    assert_close(got[1:4], expected[1:4], 1e-5)
    assert got[0].dtype == torch.bfloat16
    assert_close([got[0], *got[4:]], [expected[0], *expected[4:]], 2 * rounding)


def test_sizes_beyond_a_block(triton_device):
    lengths = (launch.PART + 20, 33)
    sizes = {"keys": 150, "values": 200, "rows": [0, 1, 1]}
    problem = moved(make(1, lengths, windowed=False, dtype=torch.float32, **sizes), triton_device)
    got = results(problem, implementation("attend", problem.keys.device))
    assert_close(got, results(exactly(problem), reference), 1e-5)


def test_one_position(triton_device):
    problem = moved(make(lengths=(1,), dtype=torch.float32), triton_device)
    attended = problem.attend(implementation("attend", problem.keys.device))
    assert attended.weights.tolist() == [[1.0]]
    torch.testing.assert_close(attended.context, problem.values[:, 0])


@WIDTHS
@pytest.mark.parametrize("poison", [math.nan, math.inf])
def test_poison_outside_changes_nothing(triton_device, cut, poison, part):
    cut(part)
    problem = moved(make(lengths=(9, 4), windowed=False, dtype=torch.float32), triton_device)
    chosen = implementation("attend", problem.keys.device)
    clean = results(problem, chosen)
    problem.keys[1, 4:] = poison
    problem.values[1, 4:] = poison
    for got, other in zip(results(problem, chosen), clean, strict=True):
        assert torch.equal(got, other)


def test_a_longer_neighbour_changes_nothing(triton_device, cut):
    cut(4)
    short = make(lengths=(7,), windowed=False, dtype=torch.float32)
    padded = short._replace(
        keys=torch.cat([short.keys, torch.ones(1, 20, 20)], dim=1),
        values=torch.cat([short.values, torch.ones(1, 20, 12)], dim=1),
    )
    alone, beside = (
        moved(problem, triton_device).attend(implementation("attend", torch.device(triton_device)))
        for problem in (short, padded)
    )
    assert torch.equal(alone.context, beside.context)
    assert torch.equal(alone.focus, beside.focus)
    assert torch.equal(alone.weights, beside.weights[:, :7])
    assert torch.equal(alone.log_sum, beside.log_sum)


def decode(problem: Problem, source: Source, attending, steps: int = 3) -> torch.Tensor:
    """A sum over steps of a decoder, each of which looks where the one before did."""
    query, focus, total = problem.query, problem.penalty.focus, 0.0
    for step in range(steps):
        penalty = Penalty(problem.penalty.gate, focus, 1.5)
        context, focus, *_ = attending(query, source, problem.rows, problem.v, None, penalty)
        query = torch.tanh(query + context[:, : query.shape[1]])
        total = total + (context**2).sum() * (step + 1) + focus.sum()
    return total


def gradients_over_steps(problem: Problem, gathered: bool) -> list[torch.Tensor]:
    problem = problem.learning()
    source = Source(problem.keys, problem.values, problem.lengths)
    if gathered:
        source = make_source(*source)
    wanted = [problem.keys, problem.values, problem.query, problem.v]
    return list(torch.autograd.grad(decode(problem, source, attend), wanted))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rows", [None, BEAM], ids=["training", "beam"])
@pytest.mark.parametrize("gathered", [True, False])
def test_many_steps_share_a_gradient(triton_device, rows, gathered):
    problem = make(keys=6, values=8, windowed=False, rows=rows, dtype=torch.float32)
    got = gradients_over_steps(moved(problem, triton_device), gathered)
    exact = exactly(problem).learning()
    source = Source(exact.keys, exact.values, exact.lengths)
    wanted = [exact.keys, exact.values, exact.query, exact.v]
    expected = torch.autograd.grad(decode(exact, source, reference.attend), wanted)
    assert_close(got, expected, 1e-5)


@pytest.mark.slow
def test_gradients_are_the_same_every_time(triton_device):
    problem = make(keys=6, values=8, windowed=False, rows=[0] * 6, dtype=torch.float32)
    problem = moved(problem, triton_device)
    first, second = (gradients_over_steps(problem, gathered=True) for _ in range(2))
    assert all(map(torch.equal, first, second))


def test_no_gradient_is_added_up_step_by_step(triton_device, monkeypatch):
    """Keys and values get one gradient after all steps, not one a step."""
    from nmtflex.ops.attend import cuda_gather

    counts = []
    of_one_score = cuda_gather._of_one_score

    def counted(notes, keys, values):
        counts.append(len(notes))
        return of_one_score(notes, keys, values)

    monkeypatch.setattr(cuda_gather, "_of_one_score", counted)
    problem = make(keys=6, values=8, windowed=False, dtype=torch.float32)
    gradients_over_steps(moved(problem, triton_device), gathered=True)
    assert counts == [3]


@pytest.mark.slow
@pytest.mark.parametrize(("form", "flags"), [("bf16", "111"), ("fp32", "000")])
def test_kernels_compile_for_a_gpu(tmp_path, form, flags):
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    environment.pop("TRITON_INTERPRET", None)
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("compile_kernels.py"), form, *flags],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    sizes = dict(line.split() for line in done.stdout.splitlines())
    assert sizes.keys() == {
        "score", "weigh", "add_parts",
        "of_weights", "of_scores", "of_query", "of_values", "of_keys",
        "walk", "backward_walk", "ssru", "backward_ssru",
    }  # fmt: skip
    assert all(int(size) for size in sizes.values())


def test_kernels_are_launched_where_their_tensors_are(monkeypatch):
    entered = []

    class Recorded:
        def __init__(self, device):
            self.device = device

        def __enter__(self):
            entered.append(self.device)

        def __exit__(self, *_):
            entered.append(None)

    monkeypatch.setattr(torch.cuda, "device", Recorded)
    with launch.launching(torch.device("cuda:1")):
        assert entered == [torch.device("cuda:1")]
    with launch.launching(torch.device("cpu")):
        pass
    assert entered == [torch.device("cuda:1"), None]


@pytest.mark.parametrize("compiler", [None, "no-such-compiler"], ids=["none", "wrong"])
def test_without_a_c_compiler(monkeypatch, tmp_path, compiler):
    """What Triton itself raises when it builds its launcher becomes one line with the remedies."""
    from triton.runtime.build import compile_module_from_src

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    if compiler:
        monkeypatch.setenv("CC", compiler)
    with (
        pytest.raises(RunError, match=r"(?s)C compiler.*gcc.*CC.*NMTFLEX_KERNELS=reference"),
        launch.launching(torch.device("cpu")),
    ):
        compile_module_from_src("int nothing;", "nothing")


def test_a_compiler_that_fails(monkeypatch, tmp_path):
    from triton.runtime.build import compile_module_from_src

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    with (
        pytest.raises(RunError, match=r"gcc ended with exit status 1\..* headers"),
        launch.launching(torch.device("cpu")),
    ):
        compile_module_from_src('#include "no_such_header.h"', "nothing")


def test_other_errors_pass():
    with pytest.raises(RuntimeError, match=r"^shapes$"), launch.launching(torch.device("cpu")):
        raise RuntimeError("shapes")
