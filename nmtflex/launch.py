"""The variables that torchrun sets for each process, read without torch.

A plain start is one process: none of them is set.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nmtflex.errors import OptionError

PATIENCE = 60.0  # seconds that a process gives another to report an error
SHARED = ("train", "finetune", "translate", "decode")  # the commands that several processes share


class Launch(NamedTuple):
    """One process among those of a command."""

    rank: int = 0  # among all
    size: int = 1  # processes on all machines
    local_rank: int = 0  # among those of this machine
    local_size: int = 1  # processes on this machine


def find_launch() -> Launch:
    """Read what torchrun set: RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE.

    Raises:
        OptionError: They are not numbers, or contradict each other.
    """
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return Launch()
    rank, size = _number("RANK", 0), _number("WORLD_SIZE", 1)
    launch = Launch(rank, size, _number("LOCAL_RANK", rank), _number("LOCAL_WORLD_SIZE", size))
    if not (0 <= rank < size and 0 <= launch.local_rank < launch.local_size <= size):
        raise OptionError(
            f"RANK {rank} of WORLD_SIZE {size}, LOCAL_RANK {launch.local_rank} of "
            f"LOCAL_WORLD_SIZE {launch.local_size} contradict each other; start with torchrun, "
            f"or unset them"
        )
    return launch


def _number(name: str, usual: int) -> int:
    value = os.environ.get(name, str(usual))
    if not value.isdecimal():
        raise OptionError(f"{name} is {value!r}, not a number; start with torchrun, or unset it")
    return int(value)


def check_shared(arguments: Sequence[str]) -> None:
    """Check that several processes can share the command of a command line.

    Raises:
        OptionError: They cannot: each would do all the work and overwrite the others' files.
    """
    command = next((word for word in arguments if not word.startswith("-")), None)
    if command is None or command in SHARED or find_launch().size == 1:
        return
    raise OptionError(
        f"{command} runs in one process, but torchrun started {find_launch().size}; "
        f"start it without torchrun"
    )


class Speaker:
    """Decides which one of N processes reports an error to the user.

    Until the processes are connected, all fail alike, and the first one of each machine reports.
    After that the first one to fail does: the others fail because of it.

    The others wait: a launcher ends all processes once one has failed, so one that exits before
    the report would keep it from being printed.
    """

    claim: Callable[[], bool] | None = None  # set by ``open_ranks``

    def speaks(self) -> bool:
        """Whether this process reports; ask once."""
        if self.claim is not None:
            return self.claim()
        try:
            return find_launch().local_rank == 0
        except OptionError:
            return True

    def outlive(self) -> None:
        """Ignore SIGTERM from here on, so that an error that is on its way is reported.

        As soon as one process is lost, a launcher sends it to the others. One that does not end
        by itself is killed half a minute later.
        """
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def wait(self) -> None:
        """Wait for the launcher to end this process because another one has reported.

        Returns only if no process was ended for so long that none can have reported.
        """
        for ending in (signal.SIGINT, signal.SIGTERM):  # training handles them, to save its state
            signal.signal(ending, signal.SIG_DFL)
        time.sleep(PATIENCE)


SPEAKER = Speaker()
