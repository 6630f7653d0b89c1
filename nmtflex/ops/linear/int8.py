"""Products in 8-bit integers, on the CPU in float32.

Each row of a weight and each row that is multiplied has a scale of its own, its greatest magnitude
over 127: a hypothesis's numbers do not depend on those beside it. What comes before and after a
product is done in one pass over its rows.

Legend: M rows, C units that come in, O units that go out, D units of an SSRU.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmtflex.ops.linear import int8_loops
from nmtflex.ops.threads import run_rows
from nmtflex.ops.torch_private import int8_product

Array = NDArray[Any]

NOTHING = np.empty(0, dtype=np.float32)


class Rows(NamedTuple):
    """Rows in 8 bits."""

    whole: Array  # [M, C]
    scales: Array  # [M]


class Norm(NamedTuple):
    """A layer norm."""

    weight: Array  # [C]
    bias: Array  # [C]
    eps: float  # added to the variance


class Int8:
    """x W^T in 8-bit integers, plus b.

    Args:
        weight: W, [O, C], which will not change.
    """

    def __init__(self, weight: Tensor) -> None:
        whole, self.scales = quantized(array(weight))
        self.weight = torch.from_numpy(whole)

    def __call__(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return x W^T + b: [M, C] and [O] to [M, O]."""
        return torch.from_numpy(self.of(quantized(array(x)), None if bias is None else array(bias)))

    def of(self, rows: Rows, bias: Array | None = None) -> Array:
        """Return x W^T + b of rows in 8 bits: [M, C] and [O] to [M, O]."""
        products = self._products(rows)
        made = np.empty(products.shape, dtype=np.float32)
        own = NOTHING if bias is None else bias
        _run(int8_loops.rescale, products, rows.scales, self.scales, own, made)
        return made

    def relu(self, rows: Rows, bias: Array) -> Rows:
        """Return the relu of x W^T + b in 8 bits: [M, C] and [O] to [M, O]."""
        products = self._products(rows)
        made = _room(products)
        _run(int8_loops.rescale_relu, products, rows.scales, self.scales, bias, *made)
        return made

    def ssru(self, rows: Rows, bias: Array, state: Array, x: Array) -> tuple[Array, Array]:
        """Advance an SSRU with this weight by one step.

        Args:
            rows: [M, C], what it reads.
            bias: [D], of the gate.
            state: [M, D].
            x: [M, D], to which its output is added.

        Returns:
            The sum [M, D], and the new state.
        """
        products = self._products(rows)
        after, made = np.empty_like(state), x.copy()
        _run(int8_loops.rescale_ssru, products, rows.scales, self.scales, bias, state, after, made)
        return made, after

    def _products(self, rows: Rows) -> Array:
        return int8_product(torch.from_numpy(rows.whole), self.weight).numpy()


def array(x: Tensor) -> Array:
    """Return a tensor's numbers without its gradient."""
    return x.detach().contiguous().numpy()


def quantized(x: Array, norm: Norm | None = None) -> Rows:
    """Return rows [M, C] in 8 bits, after layer norm if one is given."""
    rows = _room(x)
    if norm is None:
        _run(int8_loops.quantize, x, *rows)
    else:
        _run(int8_loops.normalize, x, *norm, *rows)
    return rows


def _room(like: Array) -> Rows:
    return Rows(np.empty(like.shape, dtype=np.int8), np.empty(len(like), dtype=np.float32))


def _run(loop: Any, rows: Array, *arguments: Any) -> None:
    """Run a loop over rows [M, C]."""
    run_rows(loop, len(rows), rows.size, rows, *arguments)
