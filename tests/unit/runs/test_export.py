"""Exported runs: what is in them, and weights rounded as loops round them."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

import nmtflex
from nmtflex.config import (
    AbcConfig,
    ExportConfig,
    FlexibleConfig,
    GlobalConfig,
    LocalPConfig,
    MemoryConfig,
    MochaConfig,
    RfaConfig,
)
from nmtflex.errors import OptionError, RunError
from nmtflex.ops.linear.packed import Int8
from nmtflex.runs.export import export_run
from nmtflex.runs.opening import load_run
from nmtflex.runs.weights import digest_of

PLAIN = {"device": "cpu", "threads": 1}
LINES = ["a b c", "", "h g f e d c b a", "z a"]
MECHANISMS = [
    GlobalConfig(), FlexibleConfig(), LocalPConfig(), MemoryConfig(K=3), AbcConfig(K=3),
    RfaConfig(features=4), MochaConfig(),
]  # fmt: skip


def best(run):
    return run / "checkpoints" / "best.safetensors"


def export(run, form, out=None):
    return export_run(ExportConfig(base_run=run, weights=form, run=out))


def in_loops(matrix, form):
    """Return a matrix as it is after rounding, number by number."""
    if form == "float16":
        return matrix.astype(np.float16).astype(np.float32)
    found = np.zeros_like(matrix)
    for row, numbers in enumerate(matrix):
        scale = np.float32(max(map(abs, numbers))) / np.float32(127)
        for column, number in enumerate(numbers):
            found[row, column] = np.rint(number / scale) * scale if scale else 0
    return found


@pytest.fixture
def run(make_tiny_run):
    return make_tiny_run("tiny", FlexibleConfig())


def test_what_is_in_it(run):
    for name in ("tensorboard", "checkpoints/update-00000003"):
        (run / name).mkdir()
        (run / name / "large").write_bytes(b"1")
    (run / "metrics.csv").write_text("update\n")
    (run / "commands.jsonl").write_text("")
    made = export(run, "float16")
    files = (path for path in made.folder.path.rglob("*") if path.is_file())
    assert sorted(str(path.relative_to(made.folder.path)) for path in files) == [
        "checkpoints/best.safetensors", "config.json", "pipeline/pipeline.json",
        "pipeline/source.vocabulary", "pipeline/target.vocabulary", "raw/test.source.txt",
        "raw/test.target.txt",
    ]  # fmt: skip
    assert made.folder.path == run.with_name("tiny-float16")
    sizes = [best(path).stat().st_size for path in (made.folder.path, run)]
    assert [made.bytes, made.before] == sizes
    config = json.loads(made.folder.config.read_text())
    assert config.pop("export") == {"base_run": str(run), "weights": "float16"}
    assert config == json.loads((run / "config.json").read_text())
    assert load_run(made.folder.path).update == made.update == 1


def test_float32_is_the_same(run):
    made = export(run, "float32").folder.path
    assert digest_of(best(made)) == digest_of(best(run))
    found, before = load_file(best(made)), load_file(best(run))
    assert found.keys() == before.keys()
    assert all(np.array_equal(found[name], before[name]) for name in before)


@pytest.mark.parametrize("form", ["float16", "int8"])
def test_matrices_are_rounded_and_nothing_else(run, form):
    before = load_file(best(run))
    name = next(name for name, tensor in before.items() if tensor.ndim == 2)
    before[name][1] = 0  # a row without a scale
    save_file(before, best(run), {"update": "1"})
    model = load_run(export(run, form).folder.path).model
    seen = 0
    for name, weight in model.named_parameters():
        rounded = weight.dim() == 2
        expected = in_loops(before[name], form) if rounded else before[name]
        assert np.array_equal(weight.detach().numpy(), expected), name
        seen += rounded and not np.array_equal(expected, before[name])
    assert seen > 5


@pytest.mark.sampled(3)
@pytest.mark.parametrize("decoder", ["luong", "ssru"])
@pytest.mark.parametrize("attention", MECHANISMS, ids=lambda one: one.kind)
def test_every_model_translates_as_one_of_rounded_weights(
    make_tiny_run, make_layered_run, attention, decoder
):
    make = make_tiny_run if decoder == "luong" else make_layered_run
    run = make("tiny", attention, decoder=decoder)
    made = export(run, "int8").folder.path
    rounded = {name for name, one in load_run(run).model.named_parameters() if one.dim() == 2}
    weights = {
        name: in_loops(tensor, "int8") if name in rounded else tensor
        for name, tensor in load_file(best(run)).items()
    }
    save_file(weights, best(run), {"update": "1"})
    found, expected = (nmtflex.load(path, **PLAIN).n_best(LINES, 2) for path in (made, run))
    assert found == expected


def test_int8_decoding_rounds_nothing_again():
    torch.manual_seed(3)
    weight = torch.randn(9, 33)
    weight[4] = 0
    once = torch.from_numpy(in_loops(weight.numpy(), "int8"))
    (first, scales), (again, same) = (Int8._numbers(Int8, one.numpy()) for one in (weight, once))
    assert np.array_equal(first, again)
    assert np.allclose(scales, same, rtol=1e-6, atol=0)


def test_an_export_can_be_exported(run):
    once = export(run, "int8").folder.path
    again = export(once, "float32", run / "again").folder.path
    weights = load_run(once).model.state_dict()
    assert all(
        torch.equal(weights[name], own) for name, own in load_run(again).model.state_dict().items()
    )


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda tensors, name: tensors.pop(f"{name}:scale"), "I8"),
        (lambda tensors, name: tensors.update({f"{name}:scale": np.ones(3, "f4")}), "(3,)"),
        (lambda tensors, name: tensors.update({name: tensors[name].astype("f4")}), "F32"),
        (lambda tensors, name: tensors.update({"other:scale": np.ones(3, "f4")}), "other:scale"),
    ],
)
def test_a_damaged_file_is_named(run, change, named):
    made = export(run, "int8").folder
    tensors = load_file(made.best)
    name = next(name for name, tensor in tensors.items() if tensor.dtype == np.int8)
    change(tensors, name)
    save_file(tensors, made.best, {"update": "1"})
    with pytest.raises(RunError) as caught:
        load_run(made.path)
    assert str(made.best) in str(caught.value)
    assert named in str(caught.value)


def test_what_cannot_be_exported(run, tmp_path):
    with pytest.raises(OptionError, match=f"--run {tmp_path} exists already"):
        export(run, "int8", tmp_path)
    best(run).unlink()
    with pytest.raises(RunError, match="no checkpoint yet"):
        export(run, "int8")
    shutil.rmtree(run)
    with pytest.raises(RunError, match="no such run folder"):
        export(run, "int8")
    assert list(tmp_path.iterdir()) == []
