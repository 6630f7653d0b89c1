"""Imports go one way: a folder may import those below it, never one above."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import nmtflex

PACKAGE = Path(nmtflex.__file__).parent
# From the top; what stands in one line may import each other.
LAYERS = [
    ["__main__"],
    ["cli"],
    ["__init__"],  # the Python interface, which imports the translator when it is asked for
    ["serving"],
    ["report"],
    ["figures"],
    ["comparison"],
    ["bench"],
    ["training"],
    ["evaluation"],
    ["decoding"],
    ["scoring"],
    ["runs"],
    ["model"],
    ["attention"],
    ["layers"],
    ["corpus"],
    ["markup"],
    ["text"],
    ["ops"],
    ["ranks", "meeting", "launch", "workers"],
    ["config"],
    ["files", "compiling"],
    ["garbage", "deferred"],
    ["errors"],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
PARTS = ("attention", "stack", "layers", "embedding", "bridge", "step", "sequence")
FILES = sorted(PACKAGE.rglob("*.py"))


def room(parts: tuple[str, ...]) -> str:
    """Return the folder or file at the top of the package that a module belongs to."""
    return parts[0].removesuffix(".py")


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield every module of the package that is imported, wherever the import stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "nmtflex":
            yield from (f"nmtflex.{name.name}" for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def test_every_room_has_a_place():
    assert {room(path.relative_to(PACKAGE).parts) for path in FILES} == set(LEVEL)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down(path):
    own = room(path.relative_to(PACKAGE).parts)
    for module in imported(ast.parse(path.read_text(encoding="utf-8"))):
        if not module.startswith("nmtflex."):
            continue
        other = module.split(".")[1]
        if other == own or other not in LEVEL:  # __version__, say
            continue
        assert LEVEL[other] >= LEVEL[own], f"{own} imports {module}"


def private_to_torch(node: ast.AST) -> bool:
    """Tell whether code names ``torch.ops`` or a private part of torch; ``__version__`` is none."""
    if isinstance(node, ast.Attribute):
        names = [ast.unparse(node)]
    elif isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{name.name}" for name in node.names]
    elif isinstance(node, ast.Import):
        names = [name.name for name in node.names]
    else:
        return False
    return any(re.match(r"torch\.(\w+\.)*(ops\b|_(?!\w*__))", name) for name in names)


def test_private_functions_of_torch_stand_in_one_file():
    using = {
        path.name
        for path in FILES
        if any(map(private_to_torch, ast.walk(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert using == {"torch_private.py"}


def test_only_the_dispatcher_chooses_a_form():
    for path in FILES:
        if path.name != "dispatch.py":
            tree = ast.parse(path.read_text(encoding="utf-8"))
            words = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
            assert "NMTFLEX_KERNELS" not in words, path  # as a name: messages may speak of it


def test_nobody_outside_the_model_reaches_into_it():
    for path in FILES:
        if room(path.relative_to(PACKAGE).parts) == "model":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
                inner = node.value.attr in ("decoder", "encoder") and node.attr in PARTS
                assert not inner, f"{path}:{node.lineno}"
