"""Forking a process that has loaded a run.

OpenMP's threads do not survive a fork. The fork of a process that has computed would wait for them
for ever, or numba would end it; so it gets an error with a remedy. If the first process only loaded
the run, with one thread, its forks work, and share its memory.
"""

from __future__ import annotations

import os
import sys

import torch

_state = {"watching": False, "cut off": False}


def watch_forks() -> None:
    """Note forks of this process from now on: the threads are about to start."""
    if not _state["watching"] and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_note_fork)
        _state["watching"] = True


def _note_fork() -> None:
    _state["cut off"] = True


def may_fork(device: str) -> bool:
    """Whether this process can be forked: neither threads nor a GPU compute.

    Args:
        device: The value of ``--device``.
    """
    on_cpu = device == "cpu" or (device == "auto" and not torch.cuda.is_available())
    return on_cpu and sys.platform == "linux" and "nmtflex.ops.threads" not in sys.modules


def start_in_fork(threads: int) -> None:
    """Let a forked process compute, if ``may_fork`` allowed the fork."""
    _state["cut off"] = False
    torch.set_num_threads(threads)


def check_not_forked() -> None:
    """Check that this process was not forked while threads were running.

    Raises:
        RuntimeError: It was.
    """
    if _state["cut off"]:
        raise RuntimeError(
            "this process was forked after a run had been loaded, and the threads that compute do "
            "not survive a fork; start processes with multiprocessing.get_context('spawn'), which "
            "loads the run in each of them, or fork before the first nmtflex.load"
        )
