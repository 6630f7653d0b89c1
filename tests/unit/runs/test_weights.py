"""Weights on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from nmtflex.attention import Sizes, build_attention
from nmtflex.config import RfaConfig
from nmtflex.errors import RunError
from nmtflex.runs.weights import (
    load_tensors,
    load_weights,
    map_weights,
    model_tensors,
    save_tensors,
)

SMAPS = Path("/proc/self/smaps")


@pytest.fixture
def saved(tmp_path):
    torch.manual_seed(1)
    model = nn.Linear(3, 2)
    path = tmp_path / "w.safetensors"
    save_tensors(path, model_tensors(model), {"update": "12"})
    return model, path


def test_come_back_equal(saved):
    model, path = saved
    other = nn.Linear(3, 2)
    assert load_weights(path, other) == {"update": "12"}
    assert torch.equal(other.weight, model.weight)
    assert torch.equal(other.bias, model.bias)


def test_what_a_model_drew_once_comes_back_too(tmp_path):
    sizes = Sizes(query=4, feedback=3, states=4, keys=5, source_length=6)
    torch.manual_seed(1)
    first, second = (build_attention(RfaConfig(features=3), sizes) for _ in range(2))
    assert not torch.equal(first.random, second.random)
    save_tensors(tmp_path / "w", model_tensors(first), {})
    load_weights(tmp_path / "w", second)
    assert torch.equal(first.random, second.random)


def test_a_truncated_file_is_an_error_that_names_it(saved):
    _, path = saved
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(RunError, match=r"w\.safetensors is truncated or damaged"):
        load_tensors(path)


def test_a_missing_file_is_an_error_that_names_it(tmp_path):
    with pytest.raises(RunError, match=r"gone\.safetensors: .*No such file"):
        load_tensors(tmp_path / "gone.safetensors")


def test_weights_of_another_model_are_refused(saved):
    _, path = saved
    with pytest.raises(RunError, match=r"bias has shape \(2,\) in the file, \(4,\) in the model"):
        load_weights(path, nn.Linear(3, 4))
    with pytest.raises(RunError, match=r"bias has shape \(2,\) in the file, None in the model"):
        load_weights(path, nn.Linear(3, 2, bias=False))


def test_a_full_disk_leaves_the_file_before(saved, monkeypatch):
    model, path = saved
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save_tensors(path, model_tensors(model), {})
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_mapped_weights_are_those_of_the_file(saved, dtype):
    model, path = saved
    other = nn.Linear(3, 2).to(dtype)
    map_weights(path, other)
    assert torch.equal(other.weight, model.weight.to(dtype))
    assert torch.equal(other.bias, model.bias.to(dtype))
    path.unlink()  # the weights stay
    assert torch.equal(other.weight, model.weight.to(dtype))


def test_mapped_weights_keep_what_is_tied_and_the_parts_of_a_cell(tmp_path):
    def build():
        model = nn.ModuleDict({
            "one": nn.Linear(3, 3),
            "two": nn.Linear(3, 3),
            "cell": nn.GRU(3, 2),
        })
        model["two"].weight = model["one"].weight
        return model

    first, second = build(), build()
    save_tensors(tmp_path / "w", model_tensors(first), {})
    map_weights(tmp_path / "w", second)
    assert second["two"].weight is second["one"].weight
    x = torch.randn(4, 3)
    for name in ("one", "two"):
        assert torch.equal(first[name](x), second[name](x))
    assert torch.equal(first["cell"](x)[0], second["cell"](x)[0])


@pytest.mark.skipif(not SMAPS.exists(), reason="the system does not show maps")
def test_mapped_weights_take_no_memory_of_their_own(tmp_path):
    path = tmp_path / "w"
    model, other = nn.Linear(512, 2048), nn.Linear(512, 2048)
    save_tensors(path, model_tensors(model), {})
    map_weights(path, other)
    assert torch.equal(other.weight, model.weight)
    _, mapped = SMAPS.read_text(encoding="utf-8").split(f"{path}\n", 1)
    own = {line.split(":")[0]: line.split()[1] for line in mapped.splitlines()[:20]}
    assert int(own["Rss"]) >= 4096  # kB: it was read
    assert own["Private_Dirty"] == "0"
