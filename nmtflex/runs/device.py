"""Device, number format and threads of a computation."""

from __future__ import annotations

import torch

from nmtflex.config import DeviceConfig
from nmtflex.errors import OptionError
from nmtflex.workers import default_threads


def open_device(config: DeviceConfig) -> torch.device:
    """Choose the device and set the number of threads.

    Raises:
        OptionError: The device does not exist or has no bfloat16.
    """
    torch.set_num_threads(config.threads or default_threads())
    name = config.device
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(name)
    if device.type == "cuda":
        _open_gpu(device, config)
    elif torch.get_num_threads() > 1:
        # Imported only here: numba takes half a second, and rules out forking.
        from nmtflex.ops.waiting import watch

        watch()
    return device


def _open_gpu(device: torch.device, config: DeviceConfig) -> None:
    """Make a GPU the current one, and let products of float32 use its tensor cores (TF32).

    Raises:
        OptionError: It does not exist or has no bfloat16.
    """
    count = torch.cuda.device_count()
    if (device.index or 0) >= count:
        raise OptionError(f"--device {config.device}: {count} CUDA devices found; use cpu")
    if device.index is not None:
        torch.cuda.set_device(device)  # for calls that name no device: memory, streams
    if config.dtype == "bfloat16" and not torch.cuda.is_bf16_supported():
        raise OptionError(f"--dtype bfloat16: {torch.cuda.get_device_name(device)} has none")
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True


def storage_dtype(config: DeviceConfig) -> torch.dtype:
    """Return the format of weights; for bfloat16 they stay float32 and products are autocast."""
    return torch.float64 if config.dtype == "float64" else torch.float32
