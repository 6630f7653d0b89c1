"""What any mechanism does inside a call of all layers, and what a call reads of a batch's source.

Legend: N hypotheses, h heads, A units of a head, B sentences, S source positions or slots, U units
of a network of one hidden layer.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmtflex.attention import Trace
from nmtflex.ops.linear.looking import WHOLE, Network
from nmtflex.ops.linear.packed import NOTHING, array

NO_SUMS = torch.empty(0, 0, 1)


class Parts(NamedTuple):
    """The tensors of a batch's source."""

    keys: Tensor  # [h B, S, A], or [1, S, A] if all sentences have the same
    values: Tensor  # [h B, S, A]
    sums: Tensor = NO_SUMS  # [h B, S + 2, 2 A], of the remainder


class Layout(NamedTuple):
    """A batch's source as one layer reads it."""

    parts: Parts
    lengths: Tensor  # [h B]
    reach: float = math.inf  # threshold of the penalty, or positions on each side of a centre


class Look(NamedTuple):
    """What one layer has seen, [N, h, ...]."""

    weights: Tensor  # [N, h, S]
    gates: Tensor
    before: Tensor
    after: Tensor
    windows: Tensor  # [N, h, 2]
    lengths: Tensor
    rows: Tensor  # [N], the sentences


class Inside:
    """Global attention; the base of the others.

    Args:
        mechanism: Whose weights will not change.
    """

    how: int = WHOLE
    scored: ClassVar[bool] = True  # whether its score function compares a query with keys
    tracked: ClassVar[bool] = False  # whether a step reads what the one before has left
    spread: float = 1.0  # 2 sigma^2 of penalty or damping

    def __init__(self, mechanism: Any) -> None:
        self.mechanism = mechanism

    @property
    def possible(self) -> bool:
        """Whether the call knows all options."""
        return not self.scored or self.mechanism.score.v is None

    @property
    def scale(self) -> float:
        """Of the scores."""
        return float(self.mechanism.score.scale) if self.scored else 1.0

    def network(self) -> Network:
        """Return the weights of gate or centre, if there is one."""
        return Network(NOTHING.reshape(0, 0), NOTHING, NOTHING, np.zeros(1, np.float32))

    def lay_out(self, memory: Any) -> Layout:
        """Return a batch's source."""
        return Layout(Parts(memory.keys, memory.values), memory.lengths)

    def replace(self, memory: Any, parts: Parts) -> Any:
        """Return a batch's source that reads these tensors, which have the same numbers."""
        return memory._replace(keys=parts.keys, values=parts.values)

    def trace(self, memory: Any, look: Look) -> Trace:
        """Return what a step has looked at, [N, h, ...]."""
        return Trace(look.lengths, look.weights)


class InsideWindow(Inside):
    """Mechanisms that read a window of the source."""

    tracked = True

    def trace(self, memory: Any, look: Look) -> Trace:
        """Return what a step has looked at."""
        start, stop = look.windows.unbind(2)
        return Trace(stop - start, look.weights, *self.shown(look), start, stop)

    def shown(self, look: Look) -> tuple[Tensor | None, Tensor]:
        """Return the gates, and what a trace shows as the focus."""
        return None, look.after


def network(weight: Tensor, inner: Tensor | None, v: Tensor, outer: Tensor | None) -> Network:
    """Return a network of weights [U, A], [U], [1, U] and [1]; None is 0."""
    first = v.new_zeros(len(weight)) if inner is None else inner
    last = v.new_zeros(1) if outer is None else outer
    return Network(*(array(part.detach()) for part in (weight.t(), first, v.flatten(), last)))
