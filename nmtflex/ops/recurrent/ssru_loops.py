"""The loops of an SSRU through all steps on the CPU, compiled by numba.

``cpu`` calls them. Legend: B sentences, T steps, D units.
"""

from __future__ import annotations

from typing import NamedTuple

from numba import prange

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.compiled import SUMS, compiled, entry
from nmtflex.ops.recurrent.loops import sigmoid


class Walked(NamedTuple):
    """What the backward pass of ``ssru`` reads."""

    gates: Array  # [B, T, D], before their sigmoid
    before: Array  # [B, D]
    c: Array  # [B, T, D]


@entry(parallel=True)
def ssru(gates: Array, candidates: Array, before: Array, c: Array, shares: Whole) -> None:
    """Walk an SSRU through all steps.

    Args:
        gates: [B, T, D], before their sigmoid.
        candidates: [B, T, D].
        before: [B, D], the memory before the first step.
        c: [B, T, D], becomes the memory after each step.
        shares: Where the sentences of each thread begin and end.
    """
    for share in prange(shares.shape[0] - 1):
        for row in range(shares[share], shares[share + 1]):
            last = before[row]
            for t in range(gates.shape[1]):
                step(gates[row, t], candidates[row, t], last, c[row, t])
                last = c[row, t]


@compiled(**SUMS)
def step(gates: Array, candidates: Array, last: Array, c: Array) -> None:
    """Advance an SSRU of D units by one step: from ``last`` to ``c``, all [D]."""
    one = c.dtype.type(1)
    for d in range(c.shape[0]):
        f = sigmoid(gates[d])
        c[d] = f * last[d] + (one - f) * candidates[d]


@entry(parallel=True)
def backward_ssru(
    walked: Walked,
    grads: Array,
    of_gates: Array,
    of_candidates: Array,
    of_before: Array,
    shares: Whole,
) -> None:
    """The backward pass of ``ssru``.

    Args:
        walked: What went in and came out.
        grads: [B, T, D], of c.
        of_gates: [B, T, D], becomes the gradient of the gates.
        of_candidates: [B, T, D], becomes that of the candidates.
        of_before: [B, D], becomes that of the memory before the first step.
        shares: As in ``ssru``.
    """
    steps = grads.shape[1]
    for share in prange(shares.shape[0] - 1):
        for row in range(shares[share], shares[share + 1]):
            carried = of_before[row]
            carried[:] = 0
            for back in range(steps):
                t = steps - 1 - back
                last = walked.c[row, t - 1] if t > 0 else walked.before[row]
                _backward_step(
                    walked.gates[row, t],
                    last,
                    walked.c[row, t],
                    grads[row, t],
                    of_gates[row, t],
                    of_candidates[row, t],
                    carried,
                )


@compiled(**SUMS)
def _backward_step(
    gates: Array,
    last: Array,
    c: Array,
    grads: Array,
    of_gates: Array,
    of_candidates: Array,
    carried: Array,
) -> None:
    """Pass a step's gradient on; ``carried`` is that of c from the step after, then of ``last``.

    The slope of the gate, f (1 - f) (c[t-1] - candidate), is f (c[t-1] - c[t]).
    """
    for d in range(c.shape[0]):
        f = sigmoid(gates[d])
        of_c = grads[d] + carried[d]
        kept = f * of_c
        of_gates[d] = kept * (last[d] - c[d])
        of_candidates[d] = of_c - kept
        carried[d] = kept
