"""What mechanisms that read K slots, or F features, do inside a call; legend as in ``base``."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from nmtflex.attention import Trace
from nmtflex.attention.grouping import summed
from nmtflex.attention.rfa import Fourier, Positive, RfaAttention
from nmtflex.model.decoders.inside.base import Inside, Layout, Look, Parts, network
from nmtflex.ops.linear.looking import FOURIER, POSITIVE, Network


class InsideSlots(Inside):
    """Mechanisms that read K slots in place of the source."""

    def filling(self, memory: Any) -> Tensor:
        """Return what has filled the slots, [h B, S, K]."""
        return cast("Tensor", memory.phi)

    def lay_out(self, memory: Any) -> Layout:
        """Return a batch's slots."""
        return super().lay_out(memory.slots)

    def replace(self, memory: Any, parts: Parts) -> Any:
        """Return a batch's slots in these tensors."""
        return memory._replace(slots=super().replace(memory.slots, parts))

    def trace(self, memory: Any, look: Look) -> Trace:
        """Return what a step has looked at; slots stand for what has filled them."""
        filling, beta = self.filling(memory), look.weights
        heads, slots = beta.shape[1:]
        each = filling.view(heads, len(filling) // heads, *filling.shape[1:])
        alpha, computed = each.transpose(0, 1), look.lengths.new_full(beta.shape[:2], slots)
        return Trace(computed, _on_source(look, filling), beta=beta, alpha=alpha)


class InsideMemory(InsideSlots):
    """Memory attention: the rows of W_beta are the keys of every sentence."""

    scored = False

    @property
    def possible(self) -> bool:
        """Whether the call knows all options."""
        return bool(self.mechanism.config.decoder_scoring == "softmax")

    def filling(self, memory: Any) -> Tensor:
        """Return what has filled the slots."""
        return cast("Tensor", memory.alpha)

    def lay_out(self, memory: Any) -> Layout:
        """Return a batch's slots."""
        count, slots, _ = memory.slots.shape
        lengths = torch.full((count,), slots)
        return Layout(Parts(self.mechanism.beta.weight.unsqueeze(0), memory.slots), lengths)

    def replace(self, memory: Any, parts: Parts) -> Any:
        """Return a batch's slots in this tensor."""
        return memory._replace(slots=parts.values)


class InsideFeatures(Inside):
    """Random feature attention: a sentence's norms stand in the place of keys."""

    scored = False

    def __init__(self, mechanism: RfaAttention) -> None:
        super().__init__(mechanism)
        self.how = HOW[type(mechanism.map)]

    def network(self) -> Network:
        """Return the random vectors, scaled by sigma."""
        weight = self.mechanism.random * self.mechanism.sigma
        return network(weight, None, weight.new_zeros(1, len(weight)), None)

    def lay_out(self, memory: Any) -> Layout:
        """Return a batch's sums."""
        count, features, _ = memory.sums.shape
        parts = Parts(memory.norm.unsqueeze(2), memory.sums)
        return Layout(parts, torch.full((count,), features))

    def replace(self, memory: Any, parts: Parts) -> Any:
        """Return a batch's sums in these tensors."""
        return memory._replace(norm=parts.keys.squeeze(2), sums=parts.values)

    def trace(self, memory: Any, look: Look) -> Trace:
        """Return what a step has looked at: the positions that the sums were made of."""
        computed = look.lengths.new_full(look.weights.shape[:2], look.weights.shape[2])
        return Trace(computed, _on_source(look, memory.shares))


HOW = {Fourier: FOURIER, Positive: POSITIVE}


def _on_source(look: Look, filling: Tensor) -> Tensor:
    """Return the weights [N, h, S] of what has filled slots or sums, [h B, S, K]."""
    count, heads, _ = look.weights.shape
    first = torch.arange(heads).unsqueeze(1) * (len(filling) // heads)
    folded = look.weights.transpose(0, 1).flatten(0, 1)
    weights = summed(folded, filling.transpose(1, 2), (first + look.rows).flatten())
    return weights.view(heads, count, filling.shape[1]).transpose(0, 1)
