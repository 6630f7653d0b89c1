"""Options of commands that can run in several processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from nmtflex.config.base import Config, Opt


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessConfig(Config):
    """Processes."""

    processes: Annotated[
        int,
        Opt(
            "Processes on this machine that share the work: one GPU each, or on CPUs a share of "
            "the cores. For several machines, run torchrun on each.",
            ge=1,
            le=1024,
        ),
    ] = 1
    restarts: Annotated[
        int,
        Opt(
            "How often --processes restarts all processes after one is lost; training resumes "
            "from its last checkpoint.",
            ge=0,
            le=1000,
        ),
    ] = 0

    def validate(self) -> list[str]:
        """Check that --restarts has an effect."""
        if self.restarts and self.processes == 1:
            return [f"--restarts {self.restarts} has no effect without --processes"]
        return []
