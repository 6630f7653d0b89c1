"""Recurrent layers over all steps of a batch at once, by cuDNN and oneDNN.

Legend: B sentences, T steps, I units that come in, D units of a layer, G gate units.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nmtflex.ops.dispatch import as_on_gpu
from nmtflex.ops.torch_private import gru, has_bfloat16_layers, lstm

Weights = tuple[Tensor, Tensor, Tensor, Tensor]  # [G, I], [G, D], [G] and [G]


def lstm_sequence(inputs: Tensor, state: tuple[Tensor, ...], weights: Weights) -> Tensor:
    """Return h of every step [B, T, D] of an LSTM with the gates i, f, g, o.

    Args:
        inputs: [B, T, I].
        state: h and c [B, D] before the first step.
        weights: Of inputs and of h, and their biases.
    """

    def call(inputs: Tensor, *tensors: Tensor) -> Tensor:
        return lstm(inputs, tensors[:2], tensors[2:])

    return without_autocast(call, inputs, *state, *weights)


def gru_sequence(inputs: Tensor, state: tuple[Tensor, ...], weights: Weights) -> Tensor:
    """Return h of every step [B, T, D] of a GRU with the gates r, z, n; see ``lstm_sequence``."""

    def call(inputs: Tensor, *tensors: Tensor) -> Tensor:
        return gru(inputs, tensors[0], tensors[1:])

    return without_autocast(call, inputs, *state, *weights)


def needs_float32(device: torch.device) -> bool:
    """Whether recurrent layers run in float32 under autocast.

    Under any autocast cuDNN's run in float16, for whose range the loss is not scaled here. oneDNN's
    run in bfloat16, which not every processor has.
    """
    return as_on_gpu(device) or not has_bfloat16_layers()


def without_autocast(call: Callable[..., Any], *tensors: Tensor) -> Any:
    """Run a recurrent layer in a format that it supports, and return autocast's.

    oneDNN's layers need tensors of one format; see also ``needs_float32``.
    """
    kind = tensors[0].device.type
    if not torch.is_autocast_enabled(kind):
        return call(*tensors)
    dtype = torch.get_autocast_dtype(kind)
    own = torch.float32 if needs_float32(tensors[0].device) else dtype
    with torch.autocast(kind, enabled=False):
        return call(*(tensor.to(own) for tensor in tensors)).to(dtype)
