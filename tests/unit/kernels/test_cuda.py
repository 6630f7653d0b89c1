"""The Triton kernels: compiled for a GPU without one, run on one or in Triton's interpreter.

The interpreter runs where there is no GPU, if TRITON_INTERPRET=1 is set and Triton is installed.
"""

from __future__ import annotations

import math
import os

import pytest
import torch
from problems import Problem, make

from nmtflex.kernels import reference

triton = pytest.importorskip("triton")

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
runs = pytest.mark.skipif(
    not INTERPRETED and not torch.cuda.is_available(), reason="needs a GPU or TRITON_INTERPRET=1"
)
compiles = pytest.mark.skipif(INTERPRETED, reason="interpreted kernels are not compiled")


def moved(problem: Problem) -> Problem:
    """The problem on the device where the kernels run."""

    def move(part):
        if isinstance(part, torch.Tensor):
            return part.to(DEVICE)
        if isinstance(part, tuple):
            return type(part)(*map(move, part))
        return part

    return move(problem)


def agree(problem: Problem, tolerance: float) -> None:
    from nmtflex.kernels import cuda

    results = []
    for implementation in (reference, cuda):
        learning = moved(problem).learning()
        attended = learning.attend(implementation)
        total = attended.context.float().sum() + attended.focus.sum()
        grads = torch.autograd.grad(total, learning.learnt(), allow_unused=True)
        results.append([*attended, *grads])
    for part, other in zip(*results, strict=True):
        if part is None:
            assert other is None
            continue
        assert part.dtype == other.dtype
        scale = max(1.0, float(part.detach().abs().max()))
        torch.testing.assert_close(other, part, rtol=tolerance, atol=tolerance * scale)


@runs
@pytest.mark.parametrize("additive", [True, False])
@pytest.mark.parametrize("options", [{"rows": [0, 0, 2], "damped": True}, {"windowed": False}])
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float32, 1e-5), (torch.bfloat16, 3e-2), (torch.float64, 1e-12)],
)
def test_equals_the_reference(dtype, tolerance, options, additive):
    agree(make(dtype=dtype, additive=additive, **options), tolerance)


@runs
def test_sizes_beyond_a_block():
    agree(make(lengths=(40, 33), rows=[0, 1, 1], keys=150, values=200, dtype=torch.float32), 1e-5)


@runs
@pytest.mark.parametrize("poison", [math.nan, math.inf])
def test_poison_outside_changes_nothing(poison):
    from nmtflex.kernels import cuda

    problem = moved(make(lengths=(9, 4), windowed=False, dtype=torch.float32))
    clean = problem.attend(cuda)
    problem.keys[1, 4:] = poison
    problem.values[1, 4:] = poison
    for part, other in zip(clean, problem.attend(cuda), strict=True):
        assert torch.equal(part, other)


@compiles
@pytest.mark.parametrize("form", ["fp32", "bf16"])
@pytest.mark.parametrize("additive", [True, False])
def test_kernels_compile(form, additive):
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from nmtflex.kernels import triton_loops

    blocks = {"positions": 16, "units": 128}
    flags = {"additive": additive, "punished": True, "damped": True}
    for kernel, constants in (
        (triton_loops.weigh, blocks | flags),
        (triton_loops.add_up, blocks),
    ):
        source = ASTSource(
            fn=kernel,
            signature={name: argument_type(name, form, constants) for name in kernel.arg_names},
            constexprs={(kernel.arg_names.index(name),): constants[name] for name in constants},
        )
        assert triton.compile(source, target=GPUTarget("cuda", 90, 32)).asm["ptx"]


def argument_type(name: str, form: str, constants: dict[str, object]) -> str:
    if name in constants:
        return "constexpr"
    if name in ("rows", "start", "stop"):
        return "*i64"
    if name in ("length", "size"):
        return "i32"
    if name in ("penalty_spread", "damping_spread"):
        return "fp32"
    return f"*{form}" if name in ("query", "v", "keys", "values", "context") else "*fp32"
