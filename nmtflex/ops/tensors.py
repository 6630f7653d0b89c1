"""Formats, devices and padding of tensors."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional


def precise(dtype: torch.dtype) -> torch.dtype:
    """Return the format of positions, penalties and sums, which need float32 at least."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def full_precision(device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """Return the block in which products run in their tensors' format, whatever autocast says."""
    if not torch.is_autocast_enabled(device.type):
        return contextlib.nullcontext()  # autocast's block takes as long as a small product
    return torch.autocast(device.type, enabled=False)


def padded(rows: Tensor, multiple: int) -> Tensor:
    """Add rows of zeros to [M, C] up to the next multiple."""
    missing = -len(rows) % multiple
    return functional.pad(rows, (0, 0, 0, missing)) if missing else rows


def upload(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor from the CPU to a device without waiting for a GPU."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def download(*tensors: Tensor) -> NDArray[Any]:
    """Copy tensors of one shape to the CPU in one transfer, which waits for a GPU.

    Returns:
        Their numbers in float64, stacked; integers below 2^53 are exact.
    """
    return torch.stack([tensor.double() for tensor in tensors]).cpu().numpy()


def held(tau: float, dtype: torch.dtype) -> float:
    """Return a threshold as a format holds it: only one without a limit is infinite."""
    return tau if tau == math.inf else min(tau, torch.finfo(dtype).max)
