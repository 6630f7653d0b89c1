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


def test_a_gpu_that_is_not_there_is_an_error():
    with pytest.raises(OptionError, match="--device cuda:99"):
        open_device(DeviceConfig(device="cuda:99"))


@pytest.mark.parametrize(
    ("dtype", "stored"), [("float32", "float32"), ("float64", "float64"), ("bfloat16", "float32")]
)
def test_weights_under_bfloat16_stay_float32(dtype, stored):
    assert storage_dtype(DeviceConfig(dtype=dtype)) == getattr(torch, stored)
