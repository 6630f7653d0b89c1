"""Options of comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from nmtflex.config.base import Config, Opt


@dataclass(frozen=True, kw_only=True, slots=True)
class CompareConfig(Config):
    """Comparison."""

    file: Annotated[Path, Opt("TOML file that describes the comparison.", argument=True)]
    data: Annotated[
        Path | None, Opt("Prepared folder from nmtflex preprocess, instead of the file's data.")
    ] = None
    out: Annotated[
        Path | None,
        Opt("Folder for runs, scores, table and figure (default: the file's out, or runs/FILE)."),
    ] = None
    updates: Annotated[
        int | None,
        Opt(
            "Try the comparison out: make every training so many updates long, without warm-up, in "
            "the folder trial-UPDATES of the comparison.",
            ge=1,
        ),
    ] = None
    jobs: Annotated[
        int,
        Opt(
            "Commands that run at once, each with an equal part of the cores. The speed is "
            "measured afterwards.",
            ge=1,
        ),
    ] = 1
    dry_run: Annotated[
        bool,
        Opt("Print the commands and do nothing; those that are done are marked.", flag="--dry-run"),
    ] = False
    json: Annotated[bool, Opt("Print one JSON object instead of a table.", flag="--json")] = False

    def validate(self) -> list[str]:
        """Check that all options have an effect."""
        return self.idle(dict.fromkeys(("jobs", "json"), "with --dry-run")) if self.dry_run else []
