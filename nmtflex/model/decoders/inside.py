"""What each attention mechanism does inside a call of all layers, with dot products.

Legend: N hypotheses, h heads, A units of a head, B sentences, S source
positions or slots, U units of a network of one hidden layer.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from nmtflex.attention import Attention, GlobalAttention, Heads, Trace
from nmtflex.attention.abc import AbcAttention
from nmtflex.attention.flexible import FlexibleAttention
from nmtflex.attention.grouping import summed
from nmtflex.attention.local_m import LocalMAttention
from nmtflex.attention.local_p import LocalPAttention
from nmtflex.attention.memory import MemoryAttention
from nmtflex.attention.scores import DotScore
from nmtflex.ops.linear.attend_stages import FLEXIBLE, LOCAL_M, LOCAL_P, WHOLE, Network
from nmtflex.ops.linear.packed import NOTHING, array


class Layout(NamedTuple):
    """A batch's source as one layer reads it."""

    keys: Tensor  # [h B, S, A], or [1, S, A] if all sentences have the same
    values: Tensor  # [h B, S, A]
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

    how: ClassVar[int] = WHOLE
    tracked: ClassVar[bool] = False  # whether a step reads what the one before has left
    spread: float = 1.0  # 2 sigma^2 of penalty or damping

    def __init__(self, mechanism: Any) -> None:
        self.mechanism = mechanism

    @property
    def possible(self) -> bool:
        """Whether the call knows all options."""
        return isinstance(self.mechanism.score, DotScore)

    @property
    def scale(self) -> float:
        """Of the scores."""
        return float(self.mechanism.score.scale)

    def network(self) -> Network:
        """Return the weights of gate or centre, if there is one."""
        return Network(NOTHING.reshape(0, 0), NOTHING, NOTHING, np.zeros(1, np.float32))

    def lay_out(self, memory: Any) -> Layout:
        """Return a batch's source."""
        return Layout(memory.keys, memory.values, memory.lengths)

    def replace(self, memory: Any, keys: Tensor, values: Tensor) -> Any:
        """Return a batch's source that reads these tensors, which have the same numbers."""
        return memory._replace(keys=keys, values=values)

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


class InsideFlexible(InsideWindow):
    """Flexible attention; the remainder is not inside."""

    how = FLEXIBLE

    def __init__(self, mechanism: FlexibleAttention) -> None:
        super().__init__(mechanism)
        self.spread = 2 * mechanism.sigma**2

    @property
    def possible(self) -> bool:
        """Whether the call knows all options."""
        return super().possible and not self.mechanism.remainder

    def network(self) -> Network:
        """Return the weights of the gate."""
        gate = self.mechanism.gate
        return _network(gate.state.weight, gate.state.bias, gate.v.weight, gate.v.bias)

    def lay_out(self, memory: Any) -> Layout:
        """Return a batch's source."""
        return super().lay_out(memory.source)._replace(reach=memory.tau)

    def replace(self, memory: Any, keys: Tensor, values: Tensor) -> Any:
        """Return a batch's source that reads these tensors."""
        return memory._replace(source=super().replace(memory.source, keys, values))

    def shown(self, look: Look) -> tuple[Tensor | None, Tensor]:
        """Return the gates and the focuses."""
        return look.gates, look.after


class InsideLocal(InsideWindow):
    """Mechanisms with as many positions on each side of a centre."""

    def lay_out(self, memory: Any) -> Layout:
        """Return a batch's source."""
        return super().lay_out(memory)._replace(reach=self.mechanism.reach)


class InsideLocalP(InsideLocal):
    """Local attention around a predicted centre."""

    how, tracked = LOCAL_P, False

    def __init__(self, mechanism: LocalPAttention) -> None:
        super().__init__(mechanism)
        self.spread = 2 * (mechanism.reach / 2) ** 2

    def network(self) -> Network:
        """Return the weights that predict the centre."""
        inner, _, outer = cast("tuple[nn.Linear, nn.Tanh, nn.Linear]", self.mechanism.centre)
        return _network(inner.weight, None, outer.weight, None)


class InsideLocalM(InsideLocal):
    """Local attention around the number of the step."""

    how = LOCAL_M

    def shown(self, look: Look) -> tuple[Tensor | None, Tensor]:
        """Return the centres."""
        return None, torch.minimum(look.before.long(), look.lengths - 1)


class InsideSlots(Inside):
    """Mechanisms that read K slots in place of the source."""

    def filling(self, memory: Any) -> Tensor:
        """Return what has filled the slots, [h B, S, K]."""
        return cast("Tensor", memory.phi)

    def lay_out(self, memory: Any) -> Layout:
        """Return a batch's slots."""
        return super().lay_out(memory.slots)

    def replace(self, memory: Any, keys: Tensor, values: Tensor) -> Any:
        """Return a batch's slots in these tensors."""
        return memory._replace(slots=super().replace(memory.slots, keys, values))

    def trace(self, memory: Any, look: Look) -> Trace:
        """Return what a step has looked at; slots stand for what has filled them."""
        filling, beta = self.filling(memory), look.weights
        heads, (count, sentences) = beta.shape[1], (len(beta), len(filling) // beta.shape[1])
        of = (torch.arange(heads).unsqueeze(1) * sentences + look.rows).flatten()
        folded = beta.transpose(0, 1).flatten(0, 1)
        weights = summed(folded, filling.transpose(1, 2), of).view(heads, count, -1)
        alpha = filling.view(heads, sentences, *filling.shape[1:]).transpose(0, 1)
        computed = look.lengths.new_full(beta.shape[:2], beta.shape[2])
        return Trace(computed, weights.transpose(0, 1), beta=beta, alpha=alpha)


class InsideMemory(InsideSlots):
    """Memory attention: the rows of W_beta are the keys of every sentence."""

    @property
    def possible(self) -> bool:
        """Whether the call knows all options."""
        return bool(self.mechanism.config.decoder_scoring == "softmax")

    @property
    def scale(self) -> float:
        """Of the scores."""
        return 1.0

    def filling(self, memory: Any) -> Tensor:
        """Return what has filled the slots."""
        return cast("Tensor", memory.alpha)

    def lay_out(self, memory: Any) -> Layout:
        """Return a batch's slots."""
        count, slots, _ = memory.slots.shape
        lengths = torch.full((count,), slots)
        return Layout(self.mechanism.beta.weight.unsqueeze(0), memory.slots, lengths)

    def replace(self, memory: Any, keys: Tensor, values: Tensor) -> Any:
        """Return a batch's slots in this tensor."""
        return memory._replace(slots=values)


INSIDE: dict[type[Attention], type[Inside]] = {
    GlobalAttention: Inside,
    FlexibleAttention: InsideFlexible,
    LocalPAttention: InsideLocalP,
    LocalMAttention: InsideLocalM,
    MemoryAttention: InsideMemory,
    AbcAttention: InsideSlots,
}


def inside(attention: nn.Module) -> Inside | None:
    """Return what an attending sublayer does inside a call; None if it must be outside."""
    if not isinstance(attention, Heads) or type(attention.mechanism) not in INSIDE:
        return None
    found = INSIDE[type(attention.mechanism)](attention.mechanism)
    return found if found.possible else None


def _network(weight: Tensor, inner: Tensor | None, v: Tensor, outer: Tensor | None) -> Network:
    """Return a network of weights [U, A], [U], [1, U] and [1]; None is 0."""
    first = v.new_zeros(len(weight)) if inner is None else inner
    last = v.new_zeros(1) if outer is None else outer
    return Network(*(array(part.detach()) for part in (weight.t(), first, v.flatten(), last)))
