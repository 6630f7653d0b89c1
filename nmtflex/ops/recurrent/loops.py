"""The loops of a recurrent cell and of a gate on the CPU, compiled by numba.

``cpu`` calls them. Legend: N rows, D units of a cell, A units of a gate. The gates of a cell are
adjacent in a row: i, f, g, o, D of each.
"""

from __future__ import annotations

from typing import NamedTuple

from numba import prange

from nmtflex.ops.arrays import Array, Whole
from nmtflex.ops.compiled import SUMS, compiled, entry
from nmtflex.ops.elementary import tanh


class Made(NamedTuple):
    """The inputs and results of a step of ``lstm``."""

    gates: Array  # [N, 4 D]
    cell: Array  # [N, D], c of the step before
    c: Array  # [N, D]


@compiled(**SUMS)
def sigmoid(x: float) -> float:
    """Return 1 / (1 + exp(-x))."""
    half = type(x)(0.5)
    return half * tanh(half * x) + half


@entry(parallel=True)
def lstm(
    product: Array, summand: Array, cell: Array, gates: Array, h: Array, c: Array, shares: Whole
) -> None:
    """Advance a long short-term memory by one step.

    Args:
        product: [N, 4 D], one side of the gates.
        summand: [N, 4 D], the other side.
        cell: [N, D], c of the step before.
        gates: [N, 4 D], becomes the gates; no rows if they are not wanted.
        h: [N, D], becomes the output.
        c: [N, D], becomes the memory.
        shares: Where the rows of each thread begin and end.
    """
    for share in prange(shares.shape[0] - 1):
        lstm_rows(product, summand, cell, gates, h, c, shares[share], shares[share + 1])


@compiled(**SUMS)
def lstm_rows(
    product: Array,
    summand: Array,
    cell: Array,
    gates: Array,
    h: Array,
    c: Array,
    first: int,
    last: int,
) -> None:
    """Do what ``lstm`` does for the rows ``first <= n < last``."""
    size = cell.shape[1]
    keep = gates.shape[0] > 0
    for n in range(first, last):
        x, y = product[n], summand[n]
        for d in range(size):
            i = sigmoid(x[d] + y[d])
            f = sigmoid(x[size + d] + y[size + d])
            g = tanh(x[2 * size + d] + y[2 * size + d])
            c[n, d] = f * cell[n, d] + i * g
            if keep:
                gates[n, d], gates[n, size + d], gates[n, 2 * size + d] = i, f, g
        for d in range(size):
            o = sigmoid(x[3 * size + d] + y[3 * size + d])
            h[n, d] = o * tanh(c[n, d])
            if keep:
                gates[n, 3 * size + d] = o


@entry(parallel=True)
def backward_lstm(
    made: Made,
    grad_h: Array,
    grad_c: Array,
    grad_gates: Array,
    grad_cell: Array,
    shares: Whole,
) -> None:
    """The backward pass of ``lstm``.

    Args:
        made: What went in and came out.
        grad_h: [N, D].
        grad_c: [N, D].
        grad_gates: [N, 4 D], becomes the gradient of either side of the gates.
        grad_cell: [N, D], becomes that of ``made.cell``.
        shares: As in ``lstm``.
    """
    for share in prange(shares.shape[0] - 1):
        backward_rows(made, grad_h, grad_c, grad_gates, grad_cell, shares[share], shares[share + 1])


@compiled(**SUMS)
def backward_rows(
    made: Made,
    grad_h: Array,
    grad_c: Array,
    grad_gates: Array,
    grad_cell: Array,
    first: int,
    last: int,
) -> None:
    """Do what ``backward_lstm`` does for the rows ``first <= n < last``."""
    size = grad_h.shape[1]
    one = grad_h.dtype.type(1)
    for n in range(first, last):
        gates, cell, c = made.gates[n], made.cell[n], made.c[n]
        grad = grad_gates[n]
        for d in range(size):
            i, f, g, o = gates[d], gates[size + d], gates[2 * size + d], gates[3 * size + d]
            t = tanh(c[d])
            of_c = grad_c[n, d] + grad_h[n, d] * o * (one - t * t)
            grad[d] = of_c * g * i * (one - i)
            grad[size + d] = of_c * cell[d] * f * (one - f)
            grad[2 * size + d] = of_c * i * (one - g * g)
            grad[3 * size + d] = grad_h[n, d] * t * o * (one - o)
            grad_cell[n, d] = of_c * f


@entry(parallel=True)
def gate(state: Array, word: Array, v: Array, bias: Array, gates: Array, shares: Whole) -> None:
    """Compute sigmoid(v . tanh(state + word) + bias).

    Args:
        state: [N, A].
        word: [N, A]; or of no rows, for none.
        v: [A].
        bias: [1]; or of length 0, for none.
        gates: [N], becomes the gates.
        shares: As in ``lstm``.
    """
    for share in prange(shares.shape[0] - 1):
        _gate_rows(state, word, v, bias, gates, shares[share], shares[share + 1])


@compiled(**SUMS)
def _gate_rows(
    state: Array, word: Array, v: Array, bias: Array, gates: Array, first: int, last: int
) -> None:
    for n in range(first, last):
        total = v.dtype.type(0)
        if word.shape[0]:
            for a in range(v.shape[0]):
                total += v[a] * tanh(state[n, a] + word[n, a])
        else:
            for a in range(v.shape[0]):
                total += v[a] * tanh(state[n, a])
        for b in bias:
            total += b
        gates[n] = sigmoid(total)
