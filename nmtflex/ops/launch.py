"""Starting Triton's kernels and waiting for them: tile sizes, the right GPU, no compiler."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator

import torch

from nmtflex.errors import RunError

POSITIONS, UNITS = 16, 128  # of keys or values held by a program at a time
PART = 128  # positions of a window read by one program


def blocks(count: int, size: int) -> int:
    """Return how many blocks of ``size`` hold ``count``; at least one."""
    return max(1, -(-count // size))


def wait_for(device: torch.device) -> None:
    """Wait until a GPU has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@contextlib.contextmanager
def launching(device: torch.device) -> Iterator[None]:
    """Start kernels on their tensors' GPU: Triton always takes the current one.

    Raises:
        RunError: Triton could not build its launcher, because a C compiler or Python's header
            files are missing.
    """
    place = torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext()
    try:
        with place:
            yield
    except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
        if not is_about_compiler(error):
            raise
        raise RunError(
            f"Triton could not build the launcher of its GPU kernels: {_reason(error)} Install a C "
            "compiler and Python's headers (gcc, python3-dev), name the compiler in CC, or set "
            "NMTFLEX_KERNELS=reference"
        ) from error


def is_about_compiler(error: Exception) -> bool:
    """Whether an error of Triton says that its C compiler is missing or failed."""
    if isinstance(error, subprocess.CalledProcessError):
        return "-shared" in error.cmd  # not the assembler of the kernels
    return "C compiler" in str(error) or isinstance(error, FileNotFoundError)


def _reason(error: Exception) -> str:
    """Return a sentence; for a failed compiler, which has printed why, its name."""
    if isinstance(error, subprocess.CalledProcessError):
        return f"{error.cmd[0]} ended with exit status {error.returncode}."
    return f"{str(error).rstrip('.')}."
