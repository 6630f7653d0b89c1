"""How the loops become machine code, once per machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import float32, njit
from numba.extending import overload

from nmtflex.compiling import watch_numba
from nmtflex.ops.code_cache import CodeCache
from nmtflex.ops.nested import compile_once

watch_numba()
compile_once()

# A division by zero gives inf or NaN, as in numpy: a test for it would prevent vectorisation.
# Products and sums fuse. NaN and infinity may occur.
EXACT: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}
# Sums may also be reordered, which vectorised sums need.
SUMS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz"}}
# Every operation is rounded, as PyTorch's are.
ROUNDED: dict[str, Any] = {"error_model": "numpy", "fastmath": False}


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function when another compiled one first calls it.

    LLVM chooses what it inlines. To inline everything is no faster, and takes a third longer to
    compile for a search.
    """
    return njit(**options)


def entry(parallel: bool = False, rounding: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function that Python calls, and keep the code on disk for the next process.

    ``code_cache`` says where it is kept. With ``rounding`` the code is ``ROUNDED``.
    """
    options = {"parallel": parallel, **(ROUNDED if rounding else SUMS)}

    def compile_lazily(function: Callable[..., Any]) -> Any:
        loop = njit(function, **options)
        loop._cache = CodeCache(function)  # what cache=True would set to numba's own
        loop.options = options
        return loop

    return compile_lazily


def inside(loop: Any) -> Any:
    """Return the function of an ``entry`` for other compiled ones to call.

    They cannot call the entry itself: inside of them it has no machine code of its own to keep on
    disk (see ``nested``).
    """
    return compiled(**loop.options)(loop.py_func)


def by_format(function: Any, single: Callable[..., Any]) -> None:
    """Let compiled code that calls ``function(x)`` run ``single`` where x is float32."""
    single, other = compiled(**EXACT)(single), compiled(**EXACT)(function)

    def choose(x):  # type: ignore[no-untyped-def]  # numba compares names and types of arguments
        def run_single(x):  # type: ignore[no-untyped-def]
            return single(x)

        def run_other(x):  # type: ignore[no-untyped-def]
            return other(x)

        return run_single if x == float32 else run_other

    options: Any = EXACT
    overload(function, jit_options=options)(choose)
