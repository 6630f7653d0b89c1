"""Products with weights that will not change, on the CPU in float32 or in 8-bit integers.

In 8 bits each row of a weight and each row that is multiplied has a scale of its own, its greatest
magnitude over 127. Either way a row's numbers do not depend on those beside it.

Legend: M rows, C units that come in, O units that go out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numba import config as numba_config
from numpy.typing import NDArray
from torch import Tensor

from nmtflex.ops.linear import product_loops
from nmtflex.ops.linear.int8_loops import MOST
from nmtflex.ops.linear.product_loops import COLUMNS, ROWS, laid_out, rounded
from nmtflex.ops.linear.tiles import LANES
from nmtflex.ops.threads import run_rows
from nmtflex.ops.vocabulary import output_loops

Array = NDArray[Any]

NOTHING = np.empty(0, dtype=np.float32)
config: Any = numba_config
COMPILED = not config.DISABLE_JIT  # tiles cannot run as Python
PAYS = COMPILED and LANES > 4  # without AVX2, PyTorch's own products may be faster


class Packed:
    """x W^T + b with W laid out for tiles.

    Args:
        weight: W, [O, C], which will not change.
    """

    def __init__(self, weight: Tensor) -> None:
        self.out, self.width = weight.shape
        whole, scales = self._numbers(array(weight))
        self.weight = laid_out(whole)  # flat
        self.scales = np.zeros(rounded(self.out, COLUMNS), np.float32)  # of the columns
        self.scales[: self.out] = scales

    def _numbers(self, weight: Array) -> tuple[Array, Array]:
        """Return what is multiplied, and the scales [O]."""
        return weight, np.ones(len(weight), np.float32)

    def __call__(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return x W^T + b: [M, C] and [O] to [M, O]."""
        rows, own = array(x), NOTHING if bias is None else array(bias)
        made = np.empty((len(rows), len(self.scales)), np.float32)
        by_rows = len(rows) > ROWS
        shared = len(rows) if by_rows else len(self.scales) // COLUMNS
        given = rows, self.weight, self.scales, own, made, by_rows
        run_rows(product_loops.product, shared, len(rows) * self.weight.size, *given)
        return torch.from_numpy(made)[:, : self.out]

    def best_words(
        self, x: Tensor, bias: Tensor, count: int, never: Sequence[int], only: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the most probable words of the logits x W^T + b; see ``nmtflex.ops.vocabulary``.

        Returns:
            Logarithms of their probabilities [M, K], and the words [M, K].
        """
        rows, count = array(x), min(count, self.out)
        values, words = np.empty((len(rows), count), np.float32), np.empty((len(rows), count), int)
        run_rows(
            output_loops.best_of_products,
            len(rows),
            len(rows) * self.weight.size,
            rows,
            output_loops.Layer(self.weight, self.scales, array(bias)),
            np.array(never, dtype=np.int64),
            np.full(len(rows), -1) if only is None else array(only),
            values,
            words,
        )
        return torch.from_numpy(values), torch.from_numpy(words)


class Int8(Packed):
    """The same in 8-bit integers."""

    def _numbers(self, weight: Array) -> tuple[Array, Array]:
        scales = np.abs(weight).max(axis=1, initial=0) / np.float32(MOST)
        each = np.where(scales > 0, scales, np.inf)[:, None]
        return np.rint(weight / each).astype(np.int8), scales


def array(x: Tensor) -> Array:
    """Return a tensor's numbers without its gradient."""
    return x.detach().contiguous().numpy()
