"""What flexible and local attention do inside a call; legend as in ``base``."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from nmtflex.attention import Trace
from nmtflex.attention.flexible import FlexibleAttention
from nmtflex.attention.local_p import LocalPAttention
from nmtflex.attention.remainder import left_out
from nmtflex.model.decoders.inside.base import InsideWindow, Layout, Look, Parts, network
from nmtflex.ops.attend import Penalty, Window
from nmtflex.ops.linear.looking import FLEXIBLE, LOCAL_M, LOCAL_P, Network


class InsideFlexible(InsideWindow):
    """Flexible attention, with or without a remainder."""

    how = FLEXIBLE

    def __init__(self, mechanism: FlexibleAttention) -> None:
        super().__init__(mechanism)
        self.spread = 2 * mechanism.sigma**2

    def network(self) -> Network:
        """Return the weights of the gate."""
        gate = self.mechanism.gate
        return network(gate.state.weight, gate.state.bias, gate.v.weight, gate.v.bias)

    def lay_out(self, memory: Any) -> Layout:
        """Return a batch's source."""
        layout = super().lay_out(memory.source)._replace(reach=memory.tau)
        if memory.sums is None:
            return layout
        return layout._replace(parts=layout.parts._replace(sums=memory.sums.table))

    def replace(self, memory: Any, parts: Parts) -> Any:
        """Return a batch's source that reads these tensors."""
        memory = memory._replace(source=super().replace(memory.source, parts))
        if memory.sums is None:
            return memory
        return memory._replace(sums=memory.sums._replace(table=parts.sums))

    def trace(self, memory: Any, look: Look) -> Trace:
        """Return what a step has looked at; the score of a remainder counts."""
        trace = super().trace(memory, look)
        if memory.sums is None:
            return trace
        window = Window(*(edge.flatten() for edge in look.windows.unbind(2)))
        penalty = Penalty(look.gates.flatten(), look.before.flatten(), self.mechanism.sigma)
        left = left_out(window, penalty, look.lengths.flatten(), memory.tau)
        return trace._replace(computed=trace.computed + (left.number > 0).view_as(look.gates))

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
        return network(inner.weight, None, outer.weight, None)


class InsideLocalM(InsideLocal):
    """Local attention around the number of the step."""

    how = LOCAL_M

    def shown(self, look: Look) -> tuple[Tensor | None, Tensor]:
        """Return the centres."""
        return None, torch.minimum(look.before.long(), look.lengths - 1)
