"""Functions inside of a loop become machine code as a part of it, and not by themselves too.

numba optimises a function's code and makes machine code of it as soon as it has compiled it, and
again in each function that inlines it. Our loops inline functions of functions, up to six deep, and
a parallel loop is wrapped twice, so most of a compilation was done over again. For ``entry``
functions, and for what is compiled inside of them, the outermost one does it for all.

An entry also runs its own versions of the functions inside. By default, the process that compiles
runs the first version that it made of each; a process that loads the code from disk runs the last.

This file uses numba's private functions; where they are gone, it does nothing.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core import event
from numba.core.codegen import CPUCodeLibrary
from numba.core.cpu import CPUContext
from numba.parfors import parfor_lowering

from nmtflex.ops.code_cache import CodeCache

SHARED = ("linkonce_odr", "weak_odr")  # linkages of functions that several modules may have


class _Depth(event.Listener):
    """Counts how deep inside of an entry numba compiles; one thread at a time may compile."""

    def __init__(self) -> None:
        self.depth = 0

    def on_start(self, event: event.Event) -> None:
        """Count one more."""
        if self.depth or isinstance(event.data["dispatcher"]._cache, CodeCache):
            self.depth += 1

    def on_end(self, event: event.Event) -> None:
        """Count one less."""
        self.depth = max(0, self.depth - 1)


@functools.cache
def compile_once() -> None:
    """Leave what is compiled inside of an entry to the entry, from now on."""
    places: list[tuple[Any, str, Callable[[Any, _Depth], Any]]] = [
        (CPUCodeLibrary, "_optimize_final_module", _optimise_outermost),
        (CPUCodeLibrary, "_finalize_final_module", _finish_outermost),
        (CPUContext, "create_cpython_wrapper", _wrap_outermost),
        (CPUContext, "create_cfunc_wrapper", _wrap_outermost),
        (CPUContext, "get_executable", _get_outermost),
        (parfor_lowering, "_lower_parfor_parallel", _lower_inside),
    ]
    needed = [(owner, name) for owner, name, _ in places] + [(_dynfunc, "make_function")]
    if not all(hasattr(owner, name) for owner, name in needed):
        return
    compiling = _Depth()
    event.register("numba:compile", compiling)  # type: ignore[no-untyped-call]
    for owner, name, change in places:
        numbas = getattr(owner, name)
        setattr(owner, name, functools.wraps(numbas)(change(numbas, compiling)))


def _optimise_outermost(optimise: Any, compiling: _Depth) -> Any:
    """Optimise an entry alone, with its own versions of the functions inside."""

    def change(self: Any) -> None:
        if compiling.depth == 1:
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage.name in SHARED:
                    function.linkage = "internal"
        if compiling.depth <= 1:
            optimise(self)

    return change


def _finish_outermost(finish: Any, compiling: _Depth) -> Any:
    """Make machine code of an entry alone."""

    def change(self: Any) -> None:
        if compiling.depth <= 1:
            finish(self)
        else:
            self._finalized = True

    return change


def _wrap_outermost(wrap: Any, compiling: _Depth) -> Any:
    """Make what Python or C calls of an entry alone."""

    def change(*arguments: Any, **options: Any) -> None:
        if compiling.depth <= 1:
            wrap(*arguments, **options)

    return change


def _get_outermost(get_executable: Any, compiling: _Depth) -> Any:
    """Let Python call an entry alone; what is inside raises a TypeError if it is called."""
    refuse: Any = ctypes.pythonapi.PyErr_BadArgument
    address = ctypes.cast(refuse, ctypes.c_void_p).value

    def change(self: Any, library: Any, fndesc: Any, env: Any) -> Any:
        if compiling.depth <= 1:
            return get_executable(self, library, fndesc, env)
        library._ensure_finalized()
        name, kept = fndesc.qualname.split(".")[-1], (library,)
        return _dynfunc.make_function(fndesc.lookup_module(), name, "", address, env, kept)

    return change


def _lower_inside(lower: Any, compiling: _Depth) -> Any:
    """Count the body of a parallel loop and its wrappers as inside of the entry that has it."""

    def change(*arguments: Any) -> None:
        inside = compiling.depth > 0
        compiling.depth += inside
        try:
            lower(*arguments)
        finally:
            compiling.depth -= inside

    return change
