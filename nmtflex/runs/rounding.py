"""Matrices in fewer bits, for the files of exported runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import torch
from torch import Tensor

SCALE = ":scale"  # a matrix in 8 bits has its scales under its name and this
MOST = 127  # the largest number in 8 bits; -128 is not used


def rounded(
    tensors: Mapping[str, Tensor], matrices: Collection[str], form: str
) -> dict[str, Tensor]:
    """Return tensors with some matrices in another number format; all others are in float32.

    In 8 bits, each row has one scale, its greatest absolute value / 127. ``--int8`` decoding rounds
    in the same way, so it rounds nothing that has been rounded here.

    Args:
        tensors: By name.
        matrices: Names of those that are rounded.
        form: float32, float16 or int8.
    """
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        found[name] = tensor = tensor.float()
        if name in matrices and form == "float16":
            found[name] = tensor.half()
        elif name in matrices and form == "int8":
            scales = tensor.abs().amax(1) / MOST
            each = torch.where(scales > 0, scales, torch.inf).unsqueeze(1)
            found[name], found[name + SCALE] = (tensor / each).round().to(torch.int8), scales
    return found


def restored(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors with matrices in 8 bits as float32; without their scales."""
    return {
        name: tensor * tensors[name + SCALE].unsqueeze(1) if name + SCALE in tensors else tensor
        for name, tensor in tensors.items()
        if not name.endswith(SCALE)
    }
