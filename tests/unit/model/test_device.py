"""The device options."""

from __future__ import annotations

import pytest
import torch

from nmtflex.config import DeviceConfig
from nmtflex.errors import OptionError
from nmtflex.model.device import open_device, storage_dtype


def test_auto_is_a_device_that_is_there():
    expected = "cuda" if torch.cuda.is_available() else "cpu"
    assert open_device(DeviceConfig(threads=1)).type == expected
    assert torch.get_num_threads() == 1


@pytest.mark.parametrize(("asked", "threads"), [("3", 3), ("", 5), ("0", 5), ("4,2", 5)])
def test_threads_are_those_that_openmp_is_asked_for_or_the_cores(monkeypatch, asked, threads):
    before = torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    monkeypatch.setattr("nmtflex.model.device.usable_cores", lambda: 5)
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
