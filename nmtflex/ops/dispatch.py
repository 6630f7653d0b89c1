"""The only place that chooses which form of an operation runs.

Every operation is a folder beside this file with up to three modules of the same functions:
``reference`` in plain PyTorch, ``cpu`` in numba loops and ``cuda`` in Triton. The device chooses;
where an operation lacks a form, its reference runs. The environment may force one:
``NMTFLEX_KERNELS=reference`` takes the references, and ``NMTFLEX_KERNELS=triton`` does on a CPU
what a GPU would do, in Triton's interpreter (``TRITON_INTERPRET=1``).
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from typing import Any

import torch

from nmtflex.errors import OptionError

VARIABLE = "NMTFLEX_KERNELS"
CHOICES = ("auto", "reference", "triton")
INTERPRETER = "TRITON_INTERPRET"


def form(device: torch.device) -> str:
    """Return the form that computes on a device: "cpu", "cuda" or "reference".

    Raises:
        OptionError: ``NMTFLEX_KERNELS`` has an unknown value, or asks for a form that is missing.
    """
    asked = os.environ.get(VARIABLE) or "auto"
    if asked not in CHOICES:
        raise OptionError(f"{VARIABLE}: '{asked}' is not one of {', '.join(CHOICES)}")
    if asked == "triton":
        return _forced_triton(device)
    if asked == "auto" and device.type == "cpu":
        return "cpu"
    if asked == "auto" and device.type == "cuda" and _has_triton():
        return "cuda"
    return "reference"


def implementation(operation: str, device: torch.device) -> Any:
    """Return the module that computes an operation, a folder of ``nmtflex.ops``, on a device.

    Raises:
        OptionError: As ``form``.
    """
    return _module(operation, form(device))


@contextlib.contextmanager
def steady_threads() -> Iterator[None]:
    """Make small loops on the CPU start faster inside the block; see ``threads.keep_threads``."""
    if (threads := sys.modules.get("nmtflex.ops.threads")) is None:  # no loop has run yet
        yield
        return
    with threads.keep_threads():
        yield


def as_on_gpu(device: torch.device) -> bool:
    """Whether a device computes as a GPU does: a GPU itself, or Triton's interpreter."""
    return device.type == "cuda" or form(device) == "cuda"


@functools.cache
def _module(operation: str, name: str) -> Any:
    # Imported only here: numba takes half a second.
    package = f"nmtflex.ops.{operation}"
    if importlib.util.find_spec(f"{package}.{name}") is None:
        name = "reference"
    return importlib.import_module(f"{package}.{name}")


def _forced_triton(device: torch.device) -> str:
    """Return "cuda" if Triton can compute on a device.

    Raises:
        OptionError: It cannot.
    """
    if not _has_triton():
        raise OptionError(f"{VARIABLE}=triton: Triton is not installed; run pip install triton")
    if device.type != "cuda" and os.environ.get(INTERPRETER) != "1":
        raise OptionError(
            f"{VARIABLE}=triton: on the device {device} Triton runs in its interpreter only; "
            f"set {INTERPRETER}=1 too, or unset {VARIABLE}"
        )
    return "cuda"


@functools.cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None
