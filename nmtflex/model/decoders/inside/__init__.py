"""What each attention mechanism does inside a call of all layers of a decoder.

A mechanism without an entry works between calls.
"""

from __future__ import annotations

from torch import nn

from nmtflex.attention import Attention, GlobalAttention, Heads
from nmtflex.attention.abc import AbcAttention
from nmtflex.attention.flexible import FlexibleAttention
from nmtflex.attention.local_m import LocalMAttention
from nmtflex.attention.local_p import LocalPAttention
from nmtflex.attention.memory import MemoryAttention
from nmtflex.attention.mocha import MochaAttention
from nmtflex.attention.monotonic import MonotonicAttention
from nmtflex.attention.rfa import RfaAttention
from nmtflex.model.decoders.inside.base import Inside, Look, Parts
from nmtflex.model.decoders.inside.scans import InsideMocha, InsideScan
from nmtflex.model.decoders.inside.slots import InsideFeatures, InsideMemory, InsideSlots
from nmtflex.model.decoders.inside.windows import InsideFlexible, InsideLocalM, InsideLocalP

__all__ = ["INSIDE", "Inside", "Look", "Parts", "inside"]


INSIDE: dict[type[Attention], type[Inside]] = {
    GlobalAttention: Inside,
    FlexibleAttention: InsideFlexible,
    LocalPAttention: InsideLocalP,
    LocalMAttention: InsideLocalM,
    MemoryAttention: InsideMemory,
    AbcAttention: InsideSlots,
    RfaAttention: InsideFeatures,
    MonotonicAttention: InsideScan,
    MochaAttention: InsideMocha,
}


def inside(attention: nn.Module) -> Inside | None:
    """Return what an attending sublayer does inside a call; None if it must be outside."""
    if not isinstance(attention, Heads) or type(attention.mechanism) not in INSIDE:
        return None
    found = INSIDE[type(attention.mechanism)](attention.mechanism)
    return found if found.possible else None
