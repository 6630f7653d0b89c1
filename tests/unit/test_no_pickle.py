"""No file that nmtflex reads can run code: nothing in the package unpickles or evaluates."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import nmtflex

PACKAGE = Path(nmtflex.__file__).parent
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "yaml"}
CALLS = {
    "eval", "exec", "compile", "__import__",
    "torch.load", "torch.save", "torch.jit.load", "np.load", "numpy.load", "np.save", "np.savez",
    "os.system", "os.popen",
    "dist.broadcast_object_list", "dist.all_gather_object", "dist.gather_object",
    "dist.scatter_object_list", "dist.send_object_list", "dist.recv_object_list",
}  # fmt: skip
# torch's compile and regular expressions' are none of these: they are called by a module's name.


def uses(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Call):
            yield ast.unparse(node.func)
            yield from (
                f"{key.arg}=True"
                for key in node.keywords
                if key.arg in ("shell", "allow_pickle") and ast.unparse(key.value) != "False"
            )


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_nothing_that_runs_what_it_reads(path) -> None:
    forbidden = MODULES | CALLS | {"shell=True", "allow_pickle=True"}
    assert forbidden.isdisjoint(uses(ast.parse(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from torch import load as l\ntorch.load(x)",
        "np.load(x, allow_pickle=True)",
        "def f():\n    import marshal",
        "eval('1')",
        "subprocess.run(x, shell=True)",
    ],
)
def test_the_search_finds(code) -> None:
    forbidden = MODULES | CALLS | {"shell=True", "allow_pickle=True"}
    assert not forbidden.isdisjoint(uses(ast.parse(code)))
