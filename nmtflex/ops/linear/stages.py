"""Residual sublayers one after another, in as few calls as possible.

For a few rows everything is one call, products included, and in float32 always. For many rows in
8-bit integers the products are oneDNN's, and a call runs what lies between two of them; both give
the same numbers.

Legend as in ``stage_loops``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch

from nmtflex.ops.linear import stage_loops
from nmtflex.ops.linear.int8 import Array, Int8, array
from nmtflex.ops.linear.products import Exact
from nmtflex.ops.linear.stage_loops import NONE, PRODUCT, Fixed, Moving, Source
from nmtflex.ops.threads import run_rows
from nmtflex.ops.torch_private import int8_product

FEW = 8  # rows whose products are not worth a call
# Multiplications in float32 that take less time at once than the calls of single products.
MULTIPLICATIONS = 1 << 25
NOTHING = np.empty(0, np.float32)
NO_KEYS = np.empty((0, 0, 0, 1), np.float32)
NO_ROWS = np.empty(0, np.int64)
NOWHERE = Source(NO_KEYS, NO_KEYS, NO_ROWS, NO_ROWS, 1, 1.0)


class Done(NamedTuple):
    """What some sublayers make of rows."""

    x: Array  # [M, D]
    after: Array  # [L, M, D], states of their SSRUs
    weights: Array  # [K, h, M, S], of attention


class Program:
    """A program of stages, made stage by stage and then run.

    Args:
        size: D.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._stages: list[list[int]] = []
        self._products: list[tuple[int, Int8 | Exact]] = []  # with the numbers of their stages
        self._numbers: list[Array] = []
        self._epsilon = 0.0
        self._scales = 0  # where those of the last product begin
        self._widest = size
        self._fixed: Fixed | None = None

    def multiply(self, product: Int8 | Exact) -> None:
        """Multiply the rows by a weight; the next stage reads the products."""
        begin = sum(one.weight.numel() for _, one in self._products)
        out, width = product.weight.shape
        self._scales = self._keep(product.scales)
        self._widest = max(self._widest, out, width)
        self._products.append((len(self._stages), product))
        self._stages.append([PRODUCT, NONE, NONE, NONE, begin, out, width, 0])

    def then(
        self, kind: int, norm: torch.nn.LayerNorm | None, bias: Array = NOTHING, place: int = 0
    ) -> None:
        """Do what comes before or after a product.

        Args:
            kind: Of the stage.
            norm: Of the rows before they are rounded, or after they are added to.
            bias: Of the product before.
            place: Which state or source it reads.
        """
        at = NONE
        if norm is not None:
            at = self._keep(norm.weight.detach().numpy())
            self._keep(norm.bias.detach().numpy())
            self._epsilon = norm.eps
        own = self._keep(bias) if len(bias) else NONE
        after = self._stages and self._stages[-1][stage_loops.KIND] == PRODUCT
        out = self._stages[-1][stage_loops.OUT] if after else self._size
        self._stages.append([kind, at, self._scales, own, 0, out, len(bias), place])

    @property
    def most_rows(self) -> float:
        """How many rows at most are faster here than product by product."""
        if all(isinstance(one, Int8) for _, one in self._products):
            return math.inf
        return max(FEW, MULTIPLICATIONS // sum(one.weight.numel() for _, one in self._products))

    def _keep(self, numbers: Array) -> int:
        """Keep numbers; return where they begin."""
        begin = sum(map(len, self._numbers))
        self._numbers.append(numbers)
        return begin

    def _finish(self) -> Fixed:
        """Lay everything out; the weights of the products become parts of one array."""
        flat = np.concatenate([array(one.weight).ravel() for _, one in self._products])
        begin = 0
        with torch.inference_mode(False):
            for _, one in self._products:
                end = begin + one.weight.numel()
                one.move(torch.from_numpy(flat[begin:end]).view(one.weight.shape))
                begin = end
        numbers = np.concatenate(self._numbers).astype(np.float32)
        return Fixed(np.array(self._stages), flat, numbers, self._epsilon)

    def run(self, x: Array, before: Array, source: Source = NOWHERE) -> Done:
        """Run all stages for rows [M, D].

        Args:
            x: [M, D].
            before: [L, M, D], states of its SSRUs.
            source: What is attended to.
        """
        fixed = self._fixed = self._fixed or self._finish()
        shape = len(source.keys), source.heads, len(x), source.keys.shape[2]
        done = Done(x.copy(), np.empty_like(before), np.empty(shape, np.float32))
        at_once = len(x) <= FEW or fixed.weights.dtype != np.int8
        (self._at_once if at_once else self._by_parts)(fixed, before, source, done)
        return done

    def _at_once(self, fixed: Fixed, before: Array, source: Source, done: Done) -> None:
        """Run all stages in one call."""
        rows, int8 = len(done.x), fixed.weights.dtype == np.int8
        entering: Any = np.empty((rows, self._widest), fixed.weights.dtype)
        products: Any = np.empty((rows, self._widest), np.int32 if int8 else np.float32)
        scales = np.empty(rows, np.float32)
        moving = Moving(done.x, before, done.after, entering, scales, products, done.weights)
        end, units = len(fixed.program), rows * len(fixed.weights)
        run_rows(stage_loops.run_stages, rows, units, fixed, 0, end, source, moving)

    def _by_parts(self, fixed: Fixed, before: Array, source: Source, done: Done) -> None:
        """Run what lies between products in 8 bits, and the products by themselves."""
        rows, first = len(done.x), 0
        scales = np.empty(rows, np.float32)
        products = np.empty((rows, 0), np.int32)
        for last, product in [*self._products, (len(fixed.program), None)]:
            width = 0 if product is None else product.weight.shape[1]
            entering = np.empty((rows, width), np.int8)
            moving = Moving(done.x, before, done.after, entering, scales, products, done.weights)
            run_rows(stage_loops.run_stages, rows, done.x.size, fixed, first, last, source, moving)
            if product is not None:
                products = int8_product(torch.from_numpy(entering), product.weight).numpy()
            first = last + 1
