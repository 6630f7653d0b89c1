"""Options of a command that several processes share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from nmtflex.config.base import Config, Opt


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessConfig(Config):
    """Several processes."""

    processes: Annotated[
        int,
        Opt(
            "Processes on this machine that share the work, one GPU each; on CPUs they share the "
            "cores. Of several machines, each runs torchrun.",
            ge=1,
            le=1024,
        ),
    ] = 1
    restarts: Annotated[
        int,
        Opt(
            "Times that --processes starts all of them again after one was lost; a training goes "
            "on from its last checkpoint.",
            ge=0,
            le=1000,
        ),
    ] = 0

    def validate(self) -> list[str]:
        """Check that restarts are for something."""
        if self.restarts and self.processes == 1:
            return [f"--restarts {self.restarts} has no effect without --processes"]
        return []
