"""Processes that are forked off one that has loaded a run.

OpenMP's threads do not survive a fork. A process that is forked off one that has computed would
wait for them for ever, or numba would end it; so it gets an error that says what to do instead.
Where the first process only loaded the run, with one thread, the forked ones share its memory.
"""

from __future__ import annotations

import os
import sys

import torch

_state = {"watching": False, "cut off": False}


def watch_forks() -> None:
    """Take note when this process is forked from now on: the threads are about to start."""
    if not _state["watching"] and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_note_fork)
        _state["watching"] = True


def _note_fork() -> None:
    _state["cut off"] = True


def may_fork(device: str) -> bool:
    """Whether processes can be forked off this one: no thread of it computes, nor does a GPU.

    Args:
        device: What ``--device`` names.
    """
    on_cpu = device == "cpu" or (device == "auto" and not torch.cuda.is_available())
    return on_cpu and sys.platform == "linux" and "nmtflex.ops.threads" not in sys.modules


def start_in_fork(threads: int) -> None:
    """Let a process compute that was forked where ``may_fork`` allowed it."""
    _state["cut off"] = False
    torch.set_num_threads(threads)


def check_not_forked() -> None:
    """Check that this process was not forked off one whose threads were running.

    Raises:
        RuntimeError: It was.
    """
    if _state["cut off"]:
        raise RuntimeError(
            "this process was forked after a run had been loaded, and the threads that compute do "
            "not survive a fork; start processes with multiprocessing.get_context('spawn'), which "
            "loads the run in each of them, or fork before the first nmtflex.load"
        )
