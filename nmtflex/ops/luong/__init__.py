"""All steps of Luong's decoder with input feeding, as one operation.

What a step makes goes into the next one, so the steps cannot be computed at once. But they are so
short that what lies between them, in Python and in autograd, takes as long as half their work.

Legend: B sentences, T steps, S source positions, D units of the cell and of its output vectors, A
units of a key, H units of a value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from nmtflex.ops.dispatch import form

if TYPE_CHECKING:
    from nmtflex.ops.attend import Source


class Parameters(NamedTuple):
    """The weights of the steps."""

    joint: Tensor  # [4 D, 2 D], of a[t-1] and h[t-1]
    attentional: Tensor  # [D, D + H], of h[t] and the context
    query: Tensor | None = None  # [A, D] of the additive score; without it h[t] is the query
    bias: Tensor | None = None  # [A], alike
    v: Tensor | None = None  # [A], alike


def pays(source: Source, embedded: Tensor) -> bool:
    """Whether ``steps`` can run, and is faster than one step after the other.

    That is on the CPU in float32, without autocast, where tiles are compiled.
    """
    if form(embedded.device) != "cpu" or torch.is_autocast_enabled("cpu"):
        return False
    if not embedded.dtype == source.keys.dtype == source.values.dtype == torch.float32:
        return False
    from nmtflex.ops.linear.packed import PAYS  # numba takes half a second

    return PAYS


def steps(
    gates: Tensor,
    state: tuple[Tensor, Tensor],
    source: Source,
    parameters: Parameters,
    dropout: float = 0.0,
) -> Tensor:
    """Run all steps of a decoder with one LSTM cell and global attention.

    Luong, Pham and Manning (2015), section 3, as in ``nmtflex.model.decoders.luong``. With a[-1] =
    0 and the gates i, f, g, o in this order::

        h[t], c[t] = LSTM(gates[t] + joint [dropout(a[t-1]); h[t-1]], c[t-1])
        q[t]       = query h[t] + bias, or h[t]
        context[t] = attention of q[t], as ``nmtflex.ops.attend`` over whole sentences
        a[t]       = tanh(attentional [h[t]; context[t]])

    Gradients flow to all tensors. But for the gradients of weights, which are PyTorch's products,
    results do not depend on the number of threads.

    Args:
        gates: [T, B, 4 D], the words' side of the gates.
        state: h and c [B, D] before the first step.
        source: Keys and values.
        parameters: Weights.
        dropout: Share of a[t-1] that is set to 0; the rest is divided by 1 - p.

    Returns:
        a of every step, [T, B, D].
    """
    from nmtflex.ops.luong import cpu

    return cpu.steps(gates, state, source, parameters, dropout)
