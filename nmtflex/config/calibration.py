"""Options of calibrating word scores."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from nmtflex.config.base import Config, Opt
from nmtflex.config.shared import figure_fault


@dataclass(frozen=True, kw_only=True, slots=True)
class CalibrateConfig(Config):
    """Calibration."""

    runs: Annotated[
        list[Path],
        Opt("Run folder from nmtflex train; several form an ensemble.", argument=True),
    ]
    split: Annotated[
        str | None, Opt("Split of the run's own data to fit on: valid or test (default valid).")
    ] = None
    check: Annotated[
        str | None,
        Opt(
            "Do not fit: measure the run's calibration on this split, valid or test.",
            replaces=("split",),
        ),
    ] = None
    output: Annotated[
        Path | None,
        Opt("File for a reliability diagram: .png, .svg or .pdf.", also=("--out", "-o")),
    ] = None
    json: Annotated[bool, Opt("Print one JSON object instead of a table.", flag="--json")] = False

    def validate(self) -> list[str]:
        """Check that --split has an effect, and the format of the figure."""
        faults = figure_fault(self.output)
        if self.check is not None and self.split is not None:
            faults.append(f"--split {self.split} has no effect with --check, which fits nothing")
        return faults
