"""``nmtflex report``."""

from __future__ import annotations

import datetime as dt
from typing import Any

import nmtflex
from nmtflex.cli.app import app, given_line
from nmtflex.cli.bind import command
from nmtflex.cli.console import note
from nmtflex.config import Decoding, ReportConfig, ScoreConfig, ShownConfig
from nmtflex.errors import OptionError
from nmtflex.files import atomic_file, check_writable
from nmtflex.text.visible import counted

LARGE = 50_000_000  # bytes; larger pages open slowly


@command(app, "report")
def report(
    config: ReportConfig, scores: ScoreConfig, decoding: Decoding, shown: ShownConfig
) -> None:
    """Write a report on one or more runs: a single HTML file that needs no network.

    It shows the settings and how they differ, learning curves, scores with 95 % intervals
    (bootstrap, 1,000 samples), BLEU against computations if nmtflex sweep has left tables in a run,
    BLEU by source length, where decoding spends its time, and the attention in each sentence, step
    by step: the mean of all heads and layers, or --layer and --head.
    """
    if scores.tokenize:
        raise OptionError(
            f"--tokenize {scores.tokenize} applies to scoring files, not to runs, which use their "
            f"target tokenizer"
        )
    check_writable(config.out, "--out")
    from nmtflex.evaluation.run_scores import chosen_split
    from nmtflex.report.collect import ReportTask, collect
    from nmtflex.report.page import check_plotly, render

    check_plotly()
    wanted = ReportTask(
        split=chosen_split(config.runs, config.split, note),
        sentences=config.sentences,
        scores=scores,
        decoding=decoding,
        shown=shown,
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
    """Return the default title: runs, languages and split."""
    *others, last = [run["name"] for run in report["runs"]]
    runs = f"{', '.join(others)} and {last}" if others else last
    return (
        f"Report on {runs}: {report['source_lang']} to {report['target_lang']}, {report['split']}"
    )
