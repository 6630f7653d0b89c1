"""The device options."""

from __future__ import annotations

import pytest
import torch

from nmtflex.config import DeviceConfig
from nmtflex.errors import OptionError
from nmtflex.ops.tensors import upload
from nmtflex.runs.device import open_device, storage_dtype


def test_auto_is_a_device_that_is_there():
    expected = "cuda" if torch.cuda.is_available() else "cpu"
    assert open_device(DeviceConfig(threads=1)).type == expected
    assert torch.get_num_threads() == 1


@pytest.mark.parametrize(("asked", "threads"), [("3", 3), ("", 5), ("0", 5), ("4,2", 5)])
def test_threads_are_those_that_openmp_is_asked_for_or_the_cores(monkeypatch, asked, threads):
    before = torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    monkeypatch.setattr("nmtflex.workers.usable_cores", lambda: 5)
    try:
        open_device(DeviceConfig(device="cpu"))
        assert torch.get_num_threads() == threads
        open_device(DeviceConfig(device="cpu", threads=2))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_gpu_that_is_not_there_is_an_error():
    with pytest.raises(OptionError, match="--device cuda:99"):
        open_device(DeviceConfig(device="cuda:99"))


@pytest.mark.parametrize(
    ("dtype", "stored"), [("float32", "float32"), ("float64", "float64"), ("bfloat16", "float32")]
)
def test_weights_under_bfloat16_stay_float32(dtype, stored):
    assert storage_dtype(DeviceConfig(dtype=dtype)) == getattr(torch, stored)


@pytest.fixture
def two_gpus(monkeypatch):
    """Two GPUs, of which the second alone has bfloat16; yields the current one in a list."""
    current = [0]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: current[0] == 1)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GPU of {device}")

    def set_device(device):
        current[0] = device.index

    monkeypatch.setattr(torch.cuda, "set_device", set_device)
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32
    matmul.allow_tf32 = cudnn.allow_tf32 = False
    yield current
    matmul.allow_tf32, cudnn.allow_tf32 = before


@pytest.mark.parametrize(
    ("name", "index"), [("cuda:1", 1), ("cuda:0", 0), ("cuda", 0), ("auto", 0)]
)
def test_the_gpu_asked_for_is_the_current_one(two_gpus, name, index):
    assert open_device(DeviceConfig(device=name, threads=1)).type == "cuda"
    assert two_gpus == [index]


def test_bfloat16_is_asked_of_the_gpu_that_computes(two_gpus):
    assert open_device(DeviceConfig(device="cuda:1", dtype="bfloat16", threads=1)).index == 1
    with pytest.raises(OptionError, match=r"--dtype bfloat16: GPU of cuda:0 has none"):
        open_device(DeviceConfig(device="cuda:0", dtype="bfloat16", threads=1))


def test_a_third_of_two_gpus_is_an_error(two_gpus):
    with pytest.raises(OptionError, match=r"--device cuda:2: 2 CUDA devices found"):
        open_device(DeviceConfig(device="cuda:2", threads=1))
    assert two_gpus == [0]


def test_products_of_float32_may_use_tf32_on_a_gpu(two_gpus):
    open_device(DeviceConfig(device="cuda", threads=1))
    assert torch.backends.cuda.matmul.allow_tf32
    assert torch.backends.cudnn.allow_tf32


class OnTheWay:
    """Stands for a tensor; says how it goes to a device."""

    def __init__(self, *steps):
        self.steps = steps

    def pin_memory(self):
        return OnTheWay(*self.steps, "pinned")

    def to(self, device, non_blocking=False):
        return OnTheWay(*self.steps, str(device), non_blocking)


def test_a_gpu_is_sent_pinned_memory_and_not_waited_for():
    assert upload(OnTheWay(), torch.device("cuda:1")).steps == ("pinned", "cuda:1", True)
    assert upload(OnTheWay(), torch.device("cpu")).steps == ("cpu", False)
    tensor = torch.ones(2)
    assert upload(tensor, torch.device("cpu")) is tensor
