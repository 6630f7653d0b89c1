"""Functions that are compiled inside of another one are optimised there, and not by themselves too.

numba optimises a function's code as soon as it has compiled it, and again in each function that
inlines it. Our loops inline functions of functions, up to six deep, so the same code was optimised
as often. This file uses numba's private functions; where they are gone, it does nothing.
"""

from __future__ import annotations

import functools
from typing import Any

from numba.core import event
from numba.core.codegen import CPUCodeLibrary


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
    """Leave the optimisation of nested functions to the outermost one; from now on."""
    library: Any = CPUCodeLibrary
    optimise = getattr(library, "_optimize_final_module", None)
    if optimise is None:
        return
    compiling = _Depth()
    event.register("numba:compile", compiling)  # type: ignore[no-untyped-call]

    @functools.wraps(optimise)
    def of_outermost(self: Any) -> None:
        if compiling.depth <= 1:
            optimise(self)

    library._optimize_final_module = of_outermost
