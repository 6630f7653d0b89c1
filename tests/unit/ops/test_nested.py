"""Code of functions inside of others is optimised once, where it ends up."""

from __future__ import annotations

from numba import njit

from nmtflex.ops.compiled import SUMS, compiled


def functions():
    @compiled(**SUMS)
    def inner(x: float) -> float:
        total = 0.0
        for i in range(10):
            total += x * i
        return total

    @njit(**SUMS)
    def outer(x: float) -> float:
        return inner(x) + 1

    return inner, outer


def is_optimised(function) -> bool:
    """Return whether the sum is the product that it amounts to, x times 0 + 1 + ... + 9."""
    return "4.500000e+01" in "".join(function.inspect_llvm().values())


def test_a_nested_function_is_left_to_the_outermost():
    inner, outer = functions()
    assert outer(2.0) == 91
    assert not is_optimised(inner)
    assert is_optimised(outer)


def test_a_function_that_python_calls_is_optimised():
    inner, _ = functions()
    assert inner(2.0) == 90
    assert is_optimised(inner)
