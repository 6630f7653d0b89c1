"""bfloat16 numbers, which numpy does not have, as their bits in compiled loops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nmtflex.ops.compiled import SUMS, compiled

Bits = NDArray[np.uint16]
_HALF, _LAST, _UPPER = np.uint32(0x7FFF), np.uint32(1), np.uint32(16)  # of a float32 that is cut


@compiled(**SUMS)
def widened(bits: np.uint16) -> np.float32:
    """Return a bfloat16 number in float32."""
    return np.uint32(np.uint32(bits) << _UPPER).view(np.float32)


@compiled(**SUMS)
def cut(value: np.float32) -> np.uint16:
    """Round to bfloat16, to the nearest and then even.

    No NaN carries over: the bits that are cut are 0 in a NaN that comes from bfloat16.
    """
    bits = np.float32(value).view(np.uint32)
    return np.uint16((bits + _HALF + ((bits >> _UPPER) & _LAST)) >> _UPPER)
