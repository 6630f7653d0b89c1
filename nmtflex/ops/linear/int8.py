"""Products in 8-bit integers, on the CPU in float32.

Each row of a weight and each row that is multiplied has a scale of its own, its greatest magnitude
over 127: a hypothesis's numbers do not depend on those beside it. What comes before and after a
product is done in one pass over its rows.

Legend: M rows, C units that come in, O units that go out.
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


class Int8:
    """x W^T in 8-bit integers, plus b.

    Args:
        weight: W, [O, C], which will not change.
    """

    def __init__(self, weight: Tensor) -> None:
        whole, self.scales = quantized(array(weight))
        self.weight = torch.from_numpy(whole)

    def move(self, weight: Tensor) -> None:
        """Keep the same numbers elsewhere."""
        self.weight = weight

    def __call__(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return x W^T + b: [M, C] and [O] to [M, O]."""
        rows, own = quantized(array(x)), NOTHING if bias is None else array(bias)
        products = int8_product(torch.from_numpy(rows.whole), self.weight).numpy()
        made = np.empty(products.shape, dtype=np.float32)
        _run(int8_loops.rescale, products, rows.scales, self.scales, own, made)
        return torch.from_numpy(made)


def array(x: Tensor) -> Array:
    """Return a tensor's numbers without its gradient."""
    return x.detach().contiguous().numpy()


def quantized(x: Array) -> Rows:
    """Return rows [M, C] in 8 bits."""
    rows = Rows(np.empty(x.shape, dtype=np.int8), np.empty(len(x), dtype=np.float32))
    _run(int8_loops.quantize, x, *rows)
    return rows


def _run(loop: Any, rows: Array, *arguments: Any) -> None:
    """Run a loop over rows [M, C]."""
    run_rows(loop, len(rows), rows.size, rows, *arguments)
