"""Weights on disk."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nmtflex.attention import Sizes, build_attention
from nmtflex.config import RfaConfig
from nmtflex.errors import RunError
from nmtflex.runs.weights import load_tensors, load_weights, model_tensors, save_tensors


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
