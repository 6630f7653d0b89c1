"""Options of a sweep over thresholds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from nmtflex.config.base import Config, Opt
from nmtflex.config.decoding import ReuseBelow, tau_fault
from nmtflex.config.shared import RunSplit


@dataclass(frozen=True, kw_only=True, slots=True)
class SweepConfig(Config):
    """Sweep over thresholds."""

    run: Annotated[Path, Opt("Run folder with flexible attention.", argument=True)]
    tau: Annotated[str, Opt("Thresholds, comma-separated: numbers, inf (no threshold), auto.")] = (
        "0.2,0.5,1.0,1.38,2,inf"
    )
    reuse_below: ReuseBelow = None
    split: RunSplit = None
    within: Annotated[
        float | None,
        Opt(
            "Mark the smallest threshold that loses at most this many BLEU points compared with "
            "no threshold or with --baseline (Shu and Nakayama, Japanese paper: 0.5 on validation "
            "data).",
            ge=0,
        ),
    ] = None
    baseline: Annotated[
        float | None,
        Opt(
            "BLEU for --within to compare with, such as that of global attention on this split "
            "(default: this run without a threshold).",
            ge=0,
            le=100,
        ),
    ] = None
    output: Annotated[
        Path | None,
        Opt(
            "Path of the .csv and .png files, without the suffix (default "
            "RUN/sweep-SPLIT-beamBEAM).",
            also=("--out", "-o"),
        ),
    ] = None
    json: Annotated[bool, Opt("Print one JSON object instead of a table.", flag="--json")] = False

    @property
    def taus(self) -> list[str]:
        """The thresholds as text."""
        return [tau.strip() for tau in self.tau.split(",")]

    def validate(self) -> list[str]:
        """Check every threshold, and that --baseline has an effect."""
        faults = [fault for tau in self.taus for fault in tau_fault(tau)]
        if self.baseline is not None and self.within is None:
            faults.append(f"--baseline {self.baseline:g} has no effect without --within")
        return faults
