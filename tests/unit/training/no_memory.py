"""How it looks where there is not enough memory."""

from __future__ import annotations

import numpy as np
import torch

CPU_WORDS = (
    "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: "
    "you tried to allocate 8000000000000 bytes. Error code 12 (Cannot allocate memory)"
)
ERRORS = [
    RuntimeError(CPU_WORDS),
    RuntimeError("could not create a primitive"),  # oneDNN's
    MemoryError(),
    np._core._exceptions._ArrayMemoryError((10**12,), np.dtype("f8")),
    torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
]
