"""Triton's kernels run in its interpreter where there is no GPU.

The interpreter must be asked for before Triton is loaded, and nothing loads it before this file.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator

import pytest
import torch

HAS_GPU = torch.cuda.is_available()
if HAS_GPU:
    os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # its products would differ by more than rounding
else:
    os.environ["TRITON_INTERPRET"] = "1"


@pytest.fixture
def triton_device(monkeypatch: pytest.MonkeyPatch) -> str:
    """Send everything the way that it takes on a GPU; return the device it is on."""
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed")
    # A GPU takes Triton anyway; "triton" would forbid what the search does on the CPU beside it.
    monkeypatch.setenv("NMTFLEX_KERNELS", "auto" if HAS_GPU else "triton")
    return "cuda" if HAS_GPU else "cpu"


@pytest.fixture
def with_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Let loops use some threads, also for few numbers."""
    before = torch.get_num_threads()
    monkeypatch.setattr("nmtflex.ops.threads.GRAIN", 1)
    yield torch.set_num_threads
    torch.set_num_threads(before)
