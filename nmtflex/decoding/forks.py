"""Processes that were forked off one that computes: they cannot compute themselves.

OpenMP's threads do not survive a fork. A forked process would wait for them for ever, or numba
would end it; so it is told what to do instead.
"""

from __future__ import annotations

import os

_state = {"watching": False, "cut off": False}


def watch_forks() -> None:
    """Take note when this process is forked from now on: the threads are about to start."""
    if not _state["watching"] and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_note_fork)
        _state["watching"] = True


def _note_fork() -> None:
    _state["cut off"] = True


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
