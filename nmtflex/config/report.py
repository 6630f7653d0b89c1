"""Options of the report page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from nmtflex.config.base import Config, Opt
from nmtflex.config.shared import RunSplit


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportConfig(Config):
    """Report page."""

    runs: Annotated[
        list[Path],
        Opt("Run folders; runs shown side by side must have the same test data.", argument=True),
    ]
    out: Annotated[Path, Opt("File to write.", also=("-o",))] = Path("report.html")
    split: RunSplit = None
    sentences: Annotated[
        int,
        Opt(
            "Show the first N sentences of the split one by one; 0 for none. Scores always cover "
            "the whole split. A sentence of 25 words takes about 2 kB per run, one of 150 "
            "characters 50 kB; the page without sentences takes 5 MB, for Plotly's script that "
            "draws the charts.",
            ge=0,
        ),
    ] = 1000
    title: Annotated[str, Opt("Page title.")] = ""

    def validate(self) -> list[str]:
        """Check the file suffix, and that no run is given twice."""
        faults = []
        if self.out.suffix not in (".html", ".htm"):
            faults.append(f"--out {self.out}: the page is HTML, so its name must end in .html")
        folders = [run.resolve() for run in self.runs]
        twice = next((run for run in self.runs if folders.count(run.resolve()) > 1), None)
        if twice is not None:
            faults.append(f"{twice} is given twice")
        return faults
