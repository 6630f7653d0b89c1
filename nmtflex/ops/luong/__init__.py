"""All steps of Luong's decoder with input feeding, as one operation.

What a step makes goes into the next one, so the steps cannot be computed at once. But they are so
short that what lies between them, in Python and in autograd, takes as long as half their work.

Legend: B sentences, T steps, S source positions, D units of the cell and of its output vectors, A
units of a key, H units of a value, G units of a gate.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from nmtflex.ops.dispatch import form

if TYPE_CHECKING:
    from nmtflex.ops.attend import Source


class Score(NamedTuple):
    """The weights of the additive score; without them h[t] is the query of a dot product."""

    query: Tensor | None = None  # [A, D]
    bias: Tensor | None = None  # [A]
    v: Tensor | None = None  # [A]


class Focusing(NamedTuple):
    """The gate and the penalty of flexible attention."""

    gate: Tensor  # [G, D], of h[t]
    bias: Tensor | None  # [G], inside the tanh
    v: Tensor  # [G]
    end: Tensor | None  # [1], outside the tanh
    focus: Tensor  # [B], before the first step
    sigma: float
    tau: float = math.inf


class Attending(NamedTuple):
    """What the steps attend to, and how."""

    source: Source
    score: Score
    focusing: Focusing | None = None


class Weights(NamedTuple):
    """The weights of the decoder itself."""

    joint: Tensor  # [4 D, 2 D], of a[t-1] and h[t-1]
    attentional: Tensor  # [D, D + H], of h[t] and the context


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
    feedback: Tensor,
    state: tuple[Tensor, Tensor],
    weights: Weights,
    attending: Attending,
    dropout: float = 0.0,
) -> tuple[Tensor, Tensor | None]:
    """Run all steps of a decoder with one LSTM cell and global or flexible attention.

    Luong, Pham and Manning (2015), section 3, as in ``nmtflex.model.decoders.luong``. With a[-1] =
    0 and the gates i, f, g, o in this order::

        h[t], c[t] = LSTM(gates[t] + joint [dropout(a[t-1]); h[t-1]], c[t-1])
        q[t]       = query h[t] + bias, or h[t]
        context[t] = attention of q[t], as ``nmtflex.ops.attend`` over whole sentences
        a[t]       = tanh(attentional [h[t]; context[t]])

    With a gate and a penalty, attention is that of ``nmtflex.attention.flexible`` (Shu and
    Nakayama, eq. 4-8).

    Gradients flow to all tensors. But for the gradients of weights, which are PyTorch's products,
    results do not depend on the number of threads.

    Args:
        gates: [T, B, 4 D], the words' side of the cell's gates.
        feedback: [T, B, G], the words' side of flexible attention's gate; or [T, B, 0].
        state: h and c [B, D] before the first step.
        weights: Of the decoder.
        attending: Keys, values, and the weights of attention.
        dropout: Share of a[t-1] that is set to 0; the rest is divided by 1 - p.

    Returns:
        a of every step, [T, B, D]; and the gates of flexible attention, [T, B].
    """
    from nmtflex.ops.luong import cpu

    return cpu.steps(gates, feedback, state, weights, attending, dropout)
