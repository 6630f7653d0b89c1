"""Fixtures of the recipes' tests."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "recipes"


@pytest.fixture
def script() -> Callable[[str], ModuleType]:
    """Import one of the recipes' scripts: ``script("table")``."""

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def bash(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a script of bash: ``bash(FOLDER / "wmt17.sh", DATA=folder)``, with OUT in a new folder.

    The program only says its version, unless NMTFLEX names another.
    """
    program = tmp_path / "says-its-version"
    program.write_text("#!/bin/sh\necho nmtflex 1.2.3\n")
    program.chmod(0o755)

    def run(*arguments: object, **settings: object) -> subprocess.CompletedProcess[str]:
        own = {"OUT": tmp_path / "out", "NMTFLEX": program, "PYTHON": sys.executable}
        cleared = {"DATA", "SCALE", "UPDATES", "FETCH", "KYTEA_MODEL", "SEEDS", "ALIGN", "MORE"}
        inherited = {name: value for name, value in os.environ.items() if name not in cleared}
        return subprocess.run(
            ["bash", *map(str, arguments)],
            env=inherited | {name: str(value) for name, value in (own | settings).items()},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    return run
