"""Formats and places of tensors."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor


def precise(dtype: torch.dtype) -> torch.dtype:
    """Return the format of positions, penalties and sums, which need float32 at least."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def upload(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor from the CPU to a device without waiting for work that runs on a GPU."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def download(*tensors: Tensor) -> NDArray[Any]:
    """Copy tensors of one shape to the CPU in one transfer, for which a GPU is waited for.

    Returns:
        Their numbers in float64, a part each; integers below 2^53 are exact.
    """
    return torch.stack([tensor.double() for tensor in tensors]).cpu().numpy()
