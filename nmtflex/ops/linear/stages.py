"""Residual sublayers one after another, in one call.

Legend as in ``stage_loops``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from nmtflex.ops.linear import encode_loops, stage_loops
from nmtflex.ops.linear.looking import Network, Seen, Source
from nmtflex.ops.linear.packed import NOTHING, Array, Packed
from nmtflex.ops.linear.stage_loops import NONE, PRODUCT, Fixed, Moving, Rows
from nmtflex.ops.threads import run_rows

ONE = np.float32(1)
NO_KEYS = np.empty((0, 0, 0, 1), np.float32)
NO_ROWS = np.empty(0, np.int64)
NOWHERE = Source(NO_KEYS, NO_KEYS, NO_KEYS, NO_ROWS, NO_ROWS, 1, ONE, ONE, ONE)
NO_STATES = np.empty((0, 0, 1), np.float32)
NOTHING_SEEN = Seen(
    np.empty((0, 0), np.float32),
    NO_STATES,
    NO_STATES,
    NO_STATES,
    np.empty((0, 0, 1, 2), np.int64),
    NO_KEYS,
)


class Past(NamedTuple):
    """What the steps before have left, and where this one leaves as much."""

    states: Array  # [M, L, D], of L SSRUs
    after: Array  # [M, L, D], becomes their next states
    cache: Array = np.empty((0, 0), np.float32)  # [R, L 2 D], of self-attention
    places: Array = np.empty((0, 0), np.int64)  # [M, T]
    taken: Array = np.empty((0, 0), np.float32)  # [M, D], what another operation has made


class Done(NamedTuple):
    """What some sublayers make of rows."""

    x: Array  # [M, D]
    kept: Array  # [M, O], what another operation is to read, if anything


class Program:
    """A program of stages, made stage by stage and then run.

    Args:
        size: D.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._stages: list[list[int]] = []
        self._products: list[Packed] = []
        self._numbers: list[Array] = []
        self._epsilon = 0.0
        self._widest = size
        self._kept = 0  # O of what another operation reads
        self._units = 0
        self._fixed: Fixed | None = None

    def multiply(self, product: Packed) -> None:
        """Multiply the rows by a weight; the next stage reads the products."""
        begin = sum(len(one.weight) for one in self._products)
        scales = self._keep(product.scales)
        self._widest = max(self._widest, len(product.scales), product.width)
        self._products.append(product)
        self._stages.append([
            PRODUCT,
            NONE,
            scales,
            NONE,
            begin,
            len(product.scales),
            product.width,
            *(0, 0, 0, 0),
        ])

    def then(
        self, kind: int, norm: torch.nn.LayerNorm | None, bias: Array = NOTHING, place: int = 0
    ) -> None:
        """Do what comes before or after a product.

        Args:
            kind: Of the stage.
            norm: Of the rows before they go into a product, or after they are added to.
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
        out = self._products[-1].out if after else self._size
        if kind in (stage_loops.KEEP, stage_loops.SHOW):
            self._kept = out
        self._stages.append([kind, at, NONE, own, 0, out, len(bias), place, 0, 0, 0])

    def attend(self, how: int, network: Network) -> None:
        """Say what the last stage attends to, and the network that finds it; of [0, 0], none."""
        inner, v, outer = network.inner, network.v, network.outer
        begin = self._keep(np.concatenate([inner, v, outer, network.weight.ravel()]))
        self._stages[-1][stage_loops.HOW :] = [how, begin, len(inner)]
        self._units = max(self._units, len(inner))

    def _keep(self, numbers: Array) -> int:
        """Keep numbers; return where they begin."""
        begin = sum(map(len, self._numbers))
        self._numbers.append(numbers)
        return begin

    @property
    def fixed(self) -> Fixed:
        """All that does not change from call to call."""
        self._fixed = self._fixed or self._finish()
        return self._fixed

    def _finish(self) -> Fixed:
        """Lay everything out; the weights of the products become parts of one array."""
        flat = NOTHING
        if self._products:
            flat = np.concatenate([one.weight for one in self._products])
        begin = 0
        for one in self._products:
            one.weight = flat[begin : begin + len(one.weight)]
            begin += len(one.weight)
        numbers = np.concatenate([NOTHING, *self._numbers]).astype(np.float32)
        sizes = self._epsilon, self._widest, self._units
        return Fixed(np.array(self._stages), flat, numbers, *sizes)

    def run(self, x: Array, past: Past, source: Source, seen: Seen) -> Done:
        """Run all stages for rows [M, D]; next states and what is cached go into ``past``.

        Args:
            x: [M, D].
            past: What the steps before have left.
            source: What is attended to.
            seen: What attention reads beside it, and what it leaves.
        """
        fixed = self.fixed
        done = Done(x.copy(), np.empty((len(x), self._kept), np.float32))
        rows = Rows(done.x, past.taken, done.kept)
        moving = Moving(past.states, past.after, past.cache, past.places)
        units = len(x) * len(fixed.weights)
        run_rows(stage_loops.run_stages, len(x), units, fixed, rows, moving, source, seen)
        return done

    def run_sentences(self, x: Array, heads: int, reach: int | None, lengths: Array) -> Array:
        """Run all stages for the tokens of sentences, with self-attention after what is kept.

        Args:
            x: [M, D], sentence by sentence.
            heads: h.
            reach: Tokens on each side that one attends to; None: all.
            lengths: [B], of the sentences.

        Returns:
            [M, D].
        """
        fixed = self.fixed
        x, kept = x.copy(), np.empty((len(x), self._kept), np.float32)
        ends = np.flatnonzero(fixed.program[:, stage_loops.KIND] == stage_loops.KEEP) + 1
        parts = np.array([0, *ends, len(fixed.program)])
        begins = np.array([0, *np.cumsum(lengths)])
        units = len(x) * len(fixed.weights)
        near = len(x) if reach is None else reach
        given = fixed, parts, heads, Rows(x, np.empty_like(x), kept), begins, near
        run_rows(encode_loops.run_layers, len(x), units, *given)
        return x
