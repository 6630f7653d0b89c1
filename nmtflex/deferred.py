"""Modules of other packages that a program of ours does without.

``import torch`` also imports the shapes that operations have on PyTorch's "meta" device, written in
Python. They take a quarter of the time that torch takes to import, and 18 MB. nmtflex uses that
device for models of its own only, whose operations need none of them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

UNUSED = ("torch._meta_registrations",)


def defer_unused() -> None:
    """Let a process that is all ours run the code of ``UNUSED`` only when something reads them."""
    sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where an unused module is, with a loader that waits."""
        if name not in UNUSED:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Later(spec.loader)
        return spec


class _Later(Loader):
    """Runs the code of a module when its first name is read, but those such as ``__file__``.

    Those are read of every module, for example by ``inspect``; so Python's ``LazyLoader`` would
    run the code while torch is being imported.
    """

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module as its own loader does."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Let the module run its code later."""

        def run(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r} yet")
            del vars(module)["__getattr__"]
            self._loader.exec_module(module)
            return getattr(module, name)

        vars(module)["__getattr__"] = run
