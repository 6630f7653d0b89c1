"""The gate and the penalty of flexible attention in the steps of Luong's decoder.

Compiled by numba; ``loops`` calls them. Legend as in ``nmtflex.ops.luong``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nmtflex.ops.arrays import Array
from nmtflex.ops.attend.windows import edges
from nmtflex.ops.compiled import ROUNDED, SUMS, compiled
from nmtflex.ops.elementary import tanh
from nmtflex.ops.recurrent.loops import sigmoid


class Gate(NamedTuple):
    """What the gate and the penalty read, beside the weight; of no units where there is none."""

    words: Array  # [T, B, G], the words' side; or [T, B, 0]
    bias: Array  # [G], inside the tanh; or of length 0
    v: Array  # [G]
    end: Array  # [1], outside the tanh; or of length 0
    spread: float  # 2 sigma^2
    tau: float  # threshold of the penalty; inf for none


class Gated(NamedTuple):
    """What the gate makes."""

    hidden: Array  # [T, B, G], after the tanh
    strength: Array  # [T, B]
    focus: Array  # [T + 1, B], before the step


class GateGrads(NamedTuple):
    """Gradients; all but the first are made."""

    strength: Array  # [T, B]
    hidden: Array  # [T, B, G], before the tanh
    v: Array  # [B, G], a summand of each sentence, added to
    end: Array  # [B], alike
    focus: Array  # [B], of the step after, at last of the first step; zeros at first


@compiled(**SUMS)
def open_gate(gate: Gate, products: Array, gated: Gated, t: int, n: int) -> None:
    """Compute sigmoid(v . tanh(products + words + bias) + end) of one query."""
    hidden, words, total = gated.hidden[t, n], gate.words[t, n], gate.v.dtype.type(0)
    for a in range(hidden.shape[0]):
        hidden[a] = products[a]
    for a in range(words.shape[0]):
        hidden[a] += words[a]
    for a in range(gate.bias.shape[0]):
        hidden[a] += gate.bias[a]
    for a in range(hidden.shape[0]):
        hidden[a] = tanh(hidden[a])
        total += gate.v[a] * hidden[a]
    for b in gate.end:
        total += b
    gated.strength[t, n] = sigmoid(total)


@compiled(**ROUNDED)
def window(gate: Gate, gated: Gated, t: int, n: int, length: int) -> tuple[np.int64, np.int64]:
    """Return the first position that a step computes, and the end of those."""
    if gate.tau == np.inf:
        return np.int64(0), np.int64(length)
    spread = gated.focus.dtype.type(gate.spread)
    return edges(gate.tau, gated.strength[t, n], gated.focus[t, n], spread, length)


@compiled(**SUMS)
def backward_gate(gate: Gate, gated: Gated, grads: GateGrads, grad: float, t: int, n: int) -> None:
    """The backward pass of ``open_gate``; ``grad`` is that of the penalty's strength."""
    strength, one = gated.strength[t, n], gate.v.dtype.type(1)
    slope = (grads.strength[t, n] + grad) * strength * (one - strength)
    grads.end[n] += slope
    hidden, of_hidden, of_v = gated.hidden[t, n], grads.hidden[t, n], grads.v[n]
    for a in range(hidden.shape[0]):
        of_v[a] += slope * hidden[a]
        of_hidden[a] = slope * gate.v[a] * (one - hidden[a] * hidden[a])
