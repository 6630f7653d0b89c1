"""What monotonic attention and mocha do inside a call; legend as in ``base``."""

from __future__ import annotations

from typing import Any

import torch

from nmtflex.attention import Trace
from nmtflex.attention.scores import NormalizedScore
from nmtflex.model.decoders.inside.base import InsideWindow, Layout, Look, Parts, network
from nmtflex.ops.linear.looking import MOCHA, MONOTONIC, Network


class InsideScan(InsideWindow):
    """Hard monotonic attention; the base of chunkwise attention."""

    how, scored = MONOTONIC, False

    def network(self) -> Network:
        """Return the weights of the energies, before a key is added."""
        return self._of_energies(self.mechanism.energy)

    def _of_energies(self, *scores: NormalizedScore) -> Network:
        weight = torch.cat([score.query.weight for score in scores])
        inner = torch.cat([score.query.bias for score in scores])
        v = torch.cat([score.normalized() for score in scores])
        return network(weight, inner, v.unsqueeze(0), self.mechanism.r)

    def lay_out(self, memory: Any) -> Layout:
        """Return a batch's source."""
        return super().lay_out(memory.source)._replace(reach=1)

    def replace(self, memory: Any, parts: Parts) -> Any:
        """Return a batch's source that reads these tensors."""
        return memory._replace(source=super().replace(memory.source, parts))

    def trace(self, memory: Any, look: Look) -> Trace:
        """Return what a step has looked at, which began where the last one stopped."""
        before = look.before.long()
        end = torch.minimum(look.after.long() + 1, look.lengths)
        read, _ = look.windows.unbind(2)
        first = torch.minimum(before, read)
        return Trace(end - before, look.weights, None, look.after.long(), first, end)


class InsideMocha(InsideScan):
    """Monotonic chunkwise attention: the keys of scan and chunk lie side by side."""

    how = MOCHA

    def network(self) -> Network:
        """Return the weights of the energies of scan and chunk."""
        return self._of_energies(self.mechanism.energy, self.mechanism.score)

    def lay_out(self, memory: Any) -> Layout:
        """Return a batch's source."""
        keys = torch.cat([memory.track.source.keys, memory.source.keys], dim=2)
        parts = Parts(keys, memory.source.values)
        return Layout(parts, memory.source.lengths, self.mechanism.width)

    def replace(self, memory: Any, parts: Parts) -> Any:
        """Return a batch's source that reads these tensors."""
        scanned, scored = parts.keys.chunk(2, dim=2)
        track = memory.track
        return memory._replace(
            source=memory.source._replace(keys=scored, values=parts.values),
            track=track._replace(source=track.source._replace(keys=scanned, values=parts.values)),
        )

    def trace(self, memory: Any, look: Look) -> Trace:
        """Return what a step has looked at; the scores of a chunk count, too."""
        trace = super().trace(memory, look)
        start, stop = look.windows.unbind(2)
        return trace._replace(computed=trace.computed + stop - start)
