"""``nmtflex report``."""

from __future__ import annotations

import datetime as dt
from typing import Any

import nmtflex
from nmtflex.cli.app import app, given_line
from nmtflex.cli.bind import command
from nmtflex.cli.console import note
from nmtflex.config import (
    BatchConfig,
    DeviceConfig,
    ReportConfig,
    ScoreConfig,
    SearchConfig,
    ThresholdConfig,
)
from nmtflex.errors import OptionError
from nmtflex.files import atomic_file, check_writable
from nmtflex.text.visible import counted

LARGE = 50_000_000  # bytes from which a page is slow to open


@command(app, "report")
def report(
    config: ReportConfig,
    scores: ScoreConfig,
    search: SearchConfig,
    threshold: ThresholdConfig,
    batch: BatchConfig,
    device: DeviceConfig,
) -> None:
    """Write a page about a run or several: one HTML file for a browser, which needs no network.

    It shows the settings and where they differ, learning curves, scores with 95 % intervals
    (bootstrap, 1,000 samples), BLEU against computations where nmtflex sweep left its tables in a
    run, BLEU by source length, where the decoding time goes, and sentence by sentence what
    attention looked at, step by step.
    """
    if scores.tokenize:
        raise OptionError(
            f"--tokenize {scores.tokenize} is for scoring files, not runs, whose words are their "
            f"target's"
        )
    check_writable(config.out, "--out")
    from nmtflex.evaluation.run_scores import chosen_split
    from nmtflex.evaluation.runs import Decoding
    from nmtflex.report.collect import ReportTask, collect
    from nmtflex.report.page import check_plotly, render

    check_plotly()
    decoding = Decoding(search, threshold, batch, device)
    wanted = ReportTask(
        split=chosen_split(config.runs, config.split, note),
        sentences=config.sentences,
        scores=scores,
        decoding=decoding,
    )
    found = collect(config.runs, wanted, note)
    about = {
        "title": config.title or _title(found.report),
        "version": nmtflex.__version__,
        "made": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "command": given_line(),
    }
    with atomic_file(config.out) as file:
        for piece in render(about | found.report, found.traces):
            file.write(piece.encode())
    size = config.out.stat().st_size
    note(f"wrote {config.out} ({size / 1e6:.1f} MB, {counted(len(found.traces), 'sentence')})")
    if size > LARGE:
        note(
            f"warning: {config.out} is large and may be slow to open; show fewer than "
            f"{counted(len(found.traces), 'sentence')} with --sentences"
        )


def _title(report: dict[str, Any]) -> str:
    """Say what a page shows: runs, languages and split."""
    *others, last = [run["name"] for run in report["runs"]]
    runs = f"{', '.join(others)} and {last}" if others else last
    return (
        f"Report on {runs}: {report['source_lang']} to {report['target_lang']}, {report['split']}"
    )
