"""Functions of torch that are not public, with substitutes in case they are missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def graph_task() -> int:
    """Return the number of the running backward pass, -1 outside of one.

    Without torch's count every pass has the same number, which is wrong only if a second pass over
    the same graph follows one that ended in an error.
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


def has_bfloat16_layers() -> bool:
    """Whether oneDNN has recurrent layers in bfloat16 for this processor: with AVX-512, on x86."""
    supported = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    return supported is None or supported()


def has_fast_bfloat16() -> bool:
    """Whether oneDNN multiplies by this processor's own instructions for bfloat16.

    With AVX-512 alone it computes in bfloat16 with the instructions for float32.
    """
    names = "_is_avx512_supported", "_is_avx512_bf16_supported"
    wide, own = (getattr(torch.cpu, name, lambda: True)() for name in names)
    return has_bfloat16_layers() and (own or not wide)


def lstm(inputs: Tensor, state: Sequence[Tensor], weights: Sequence[Tensor]) -> Tensor:
    """Return h of every step [B, T, D] of an LSTM layer, by the function behind ``nn.LSTM``.

    Args:
        inputs: [B, T, I].
        state: h and c, [B, D].
        weights: [4 D, I], [4 D, D], [4 D] and [4 D].
    """
    before = [part.unsqueeze(0).contiguous() for part in state]
    return _recurrent(torch._VF.lstm, inputs, before, weights)


def gru(inputs: Tensor, state: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """Return h of every step of a GRU layer, by the function behind ``nn.GRU``; see ``lstm``."""
    return _recurrent(torch._VF.gru, inputs, state.unsqueeze(0).contiguous(), weights)


def _recurrent(layer: Any, inputs: Tensor, before: Any, weights: Sequence[Tensor]) -> Tensor:
    """Run one layer with biases in one direction, batch first."""
    plain = [weight.contiguous() for weight in weights]
    train = torch.is_grad_enabled()
    found: Tensor = layer(inputs, before, plain, True, 1, 0.0, train, False, True)[0]
    return found
