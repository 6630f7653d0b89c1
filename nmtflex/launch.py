"""What torchrun tells each process that it starts; no torch is needed to know it.

A plain start is one process: nothing of this is set, and nothing is paid for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nmtflex.errors import OptionError

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
        OptionError: They are no numbers that go together.
    """
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return Launch()
    rank, size = _number("RANK", 0), _number("WORLD_SIZE", 1)
    launch = Launch(rank, size, _number("LOCAL_RANK", rank), _number("LOCAL_WORLD_SIZE", size))
    if not (0 <= rank < size and 0 <= launch.local_rank < launch.local_size <= size):
        raise OptionError(
            f"RANK {rank} of WORLD_SIZE {size}, LOCAL_RANK {launch.local_rank} of "
            f"LOCAL_WORLD_SIZE {launch.local_size} do not go together; start with torchrun, or "
            f"unset them"
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
        OptionError: Each would do the whole work, and write over the others.
    """
    command = next((word for word in arguments if not word.startswith("-")), None)
    if command is None or command in SHARED or find_launch().size == 1:
        return
    raise OptionError(
        f"{command} is the work of one process, and torchrun started {find_launch().size}; "
        f"start it without torchrun"
    )


class Speaker:
    """Decides which process tells the user what went wrong: one of all, or there would be N lines.

    As long as the processes do not know each other, all fail alike, and the first one of each
    machine speaks. Then the first one to fail does: the others fail for want of it.
    """

    claim: Callable[[], bool] | None = None  # set by ``open_ranks``

    def speaks(self) -> bool:
        """Whether this process is the one; ask once."""
        if self.claim is not None:
            return self.claim()
        try:
            return find_launch().local_rank == 0
        except OptionError:
            return True


SPEAKER = Speaker()
