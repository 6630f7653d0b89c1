"""Functions that are compiled inside of another one are optimised there, and not by themselves too.

numba optimises a function's code as soon as it has compiled it, and again in each function that
inlines it. Our loops inline functions of functions, up to six deep, and a parallel loop is wrapped
twice, so the same code was optimised as often.

The outermost function then runs its own versions of the functions inside. By default, the process
that compiles runs the first version that it made of each, which nothing has optimised; a process
that loads the code from disk runs the last one.

This file uses numba's private functions; where they are gone, it does nothing.
"""

from __future__ import annotations

import functools
from typing import Any

from numba.core import event
from numba.core.codegen import CPUCodeLibrary
from numba.parfors import parfor_lowering

SHARED = ("linkonce_odr", "weak_odr")  # linkages of functions that several modules may have


class _Depth(event.Listener):
    """Counts the compilations that are going on; numba lets one thread compile at a time."""

    def __init__(self) -> None:
        self.depth = 0

    def on_start(self, event: event.Event) -> None:
        """Count one more."""
        self.depth += 1

    def on_end(self, event: event.Event) -> None:
        """Count one less."""
        self.depth -= 1


@functools.cache
def optimise_once() -> None:
    """Leave the optimisation of nested functions to the outermost one, from now on."""
    library: Any = CPUCodeLibrary
    lowering: Any = parfor_lowering
    optimise = getattr(library, "_optimize_final_module", None)
    wrap_loop = getattr(lowering, "call_parallel_gufunc", None)
    if optimise is None or wrap_loop is None:
        return
    compiling = _Depth()
    event.register("numba:compile", compiling)  # type: ignore[no-untyped-call]

    @functools.wraps(optimise)
    def of_outermost(self: Any) -> None:
        if compiling.depth <= 1:
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage.name in SHARED:
                    function.linkage = "internal"
            optimise(self)

    @functools.wraps(wrap_loop)
    def nested(*arguments: Any, **options: Any) -> Any:
        compiling.depth += 1
        try:
            return wrap_loop(*arguments, **options)
        finally:
            compiling.depth -= 1

    library._optimize_final_module = of_outermost
    lowering.call_parallel_gufunc = nested
