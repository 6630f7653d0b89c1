"""Options of the report page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from nmtflex.config.base import Config, Opt


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportConfig(Config):
    """What the page shows."""

    runs: Annotated[
        list[Path],
        Opt(
            "Run folders; several must have the same test data, to stand side by side.",
            argument=True,
        ),
    ]
    out: Annotated[Path, Opt("File to write.")] = Path("report.html")
    split: Annotated[
        str | None,
        Opt("Split of the runs' own data, valid or test (default test, or valid without one)."),
    ] = None
    sentences: Annotated[
        int,
        Opt(
            "Sentences to explore, the first of the split, 0 for none; scores are of the whole "
            "split. A sentence of 25 words takes some 2 kB a run, one of 150 characters 50 kB, and "
            "the page without any 5 MB: Plotly's script, which draws the charts.",
            ge=0,
        ),
    ] = 1000
    title: Annotated[str, Opt("Title of the page.")] = ""

    def validate(self) -> list[str]:
        """Check the ending, and that no run stands there twice."""
        faults = []
        if self.out.suffix not in (".html", ".htm"):
            faults.append(f"--out {self.out}: the page is HTML; give a name that ends in .html")
        folders = [run.resolve() for run in self.runs]
        twice = next((run for run in self.runs if folders.count(run.resolve()) > 1), None)
        if twice is not None:
            faults.append(f"{twice} is given twice")
        return faults
