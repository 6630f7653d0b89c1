"""What a program does without is not run, until something asks for it."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

from nmtflex import deferred

EVERY_MODEL = """
import sys
from nmtflex.deferred import defer_unused
defer_unused()
import torch
from nmtflex.config import AttentionConfig, ModelConfig
from nmtflex.model.build import build_model, outlined
with outlined():
    for attention in AttentionConfig.variants().values():
        for encoder in "recurrent", "transformer":
            for decoder in "bahdanau", "luong", "ssru", "transformer":
                build_model(ModelConfig.from_flat(
                    attention=attention(), encoder=encoder, decoder=decoder,
                ), 30, 30, 9)
print("torch._decomp" in sys.modules)
print(callable(torch._meta_registrations.register_meta), "torch._decomp" in sys.modules)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module that is deferred, and that counts how often it is run."""
    name = "a_module_for_later"
    (tmp_path / f"{name}.py").write_text("import sys\nsys.runs_for_later += 1\nanswer = 42\n")
    monkeypatch.setattr(deferred, "UNUSED", (name, "nothing_of_this_name"))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(sys, "runs_for_later", 0, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    deferred.defer_unused()
    yield name
    sys.modules.pop(name, None)


def test_a_module_runs_when_a_name_of_it_is_read(module):
    later = importlib.import_module(module)
    assert inspect.getfile(later).endswith(f"{module}.py")
    assert not hasattr(later, "__wrapped__")
    assert sys.runs_for_later == 0
    assert later.answer == 42
    assert sys.runs_for_later == 1
    assert importlib.import_module(module).answer == 42
    with pytest.raises(AttributeError, match="question"):
        _ = later.question
    assert sys.runs_for_later == 1


def test_names_can_be_imported_from_it(module):
    found = {}
    exec(f"from {module} import answer", found)
    assert found["answer"] == 42


def test_what_does_not_exist_is_not_found(module):
    with pytest.raises(ModuleNotFoundError, match="nothing_of_this_name"):
        importlib.import_module("nothing_of_this_name")


def test_every_model_is_laid_out_without_it():
    program = [sys.executable, "-c", EVERY_MODEL]
    done = subprocess.run(program, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True", "True"]
