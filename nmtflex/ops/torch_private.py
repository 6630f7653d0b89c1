"""Functions of torch that are not public, each with what serves where they are missing."""

from __future__ import annotations

import torch
from torch import Tensor


def graph_task() -> int:
    """Return the number of the running backward pass, -1 outside of one.

    Without torch's own count every pass has the same number, which is wrong only where a second
    pass over the same graph follows a first that ended in an error.
    """
    current = getattr(torch._C, "_current_graph_task_id", None)
    return -1 if current is None else current()


def has_onednn(weight: Tensor) -> bool:
    """Whether oneDNN multiplies by a weight: on the CPU in float32."""
    if weight.device.type != "cpu" or weight.dtype != torch.float32 or not weight.numel():
        return False
    return torch._C._has_mkldnn and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def onednn_product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return x W^T + b by oneDNN, for weights of ``has_onednn``: [M, C] to [M, O]."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def onednn_layout(weight: Tensor) -> Tensor:
    """Return a weight [O, C] laid out for ``onednn_product``."""
    return torch.ops.mkldnn._reorder_linear_weight(weight, None)


def int8_product(x: Tensor, weight: Tensor) -> Tensor:
    """Return x W^T of integers of 8 bits in 32 bits: [M, C] and [O, C] to [M, O]."""
    product = getattr(torch, "_int_mm", None)
    if product is None:
        return x.int() @ weight.int().t()
    return product(x, weight.t())
