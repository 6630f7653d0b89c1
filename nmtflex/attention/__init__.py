"""Attention mechanisms: the contract in ``base``, then one mechanism a file.

A new mechanism is a file here, its options in ``nmtflex.config`` and a line below.
"""

from nmtflex.attention.abc import AbcAttention
from nmtflex.attention.base import (
    ATTENTIONS,
    UNLIMITED,
    Attention,
    Glimpse,
    Limits,
    Sizes,
    State,
    Trace,
    build_attention,
)
from nmtflex.attention.flexible import FlexibleAttention
from nmtflex.attention.global_ import GlobalAttention
from nmtflex.attention.heads import Heads
from nmtflex.attention.local_m import LocalMAttention
from nmtflex.attention.local_p import LocalPAttention
from nmtflex.attention.memory import MemoryAttention
from nmtflex.attention.mocha import MochaAttention
from nmtflex.attention.monotonic import MonotonicAttention
from nmtflex.attention.none import NoAttention
from nmtflex.attention.reuse import Reuse
from nmtflex.attention.rfa import RfaAttention

__all__ = [
    "ATTENTIONS",
    "UNLIMITED",
    "AbcAttention",
    "Attention",
    "FlexibleAttention",
    "Glimpse",
    "GlobalAttention",
    "Heads",
    "Limits",
    "LocalMAttention",
    "LocalPAttention",
    "MemoryAttention",
    "MochaAttention",
    "MonotonicAttention",
    "NoAttention",
    "Reuse",
    "RfaAttention",
    "Sizes",
    "State",
    "Trace",
    "build_attention",
]
