"""``nmtflex info``."""

from __future__ import annotations

import json as json_format
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from nmtflex.cli.app import app
from nmtflex.cli.bind import command
from nmtflex.cli.console import write_line
from nmtflex.text.visible import counted, visible

WIDTH = 11  # of the names, in characters


@command(app, "info")
def info(
    run: Annotated[Path, typer.Argument(help="Run folder from nmtflex train.", metavar="RUN")],
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of text.")
    ] = False,
) -> None:
    """Describe a run: data, options, sizes, best score, files, and the commands that made it.

    The options form a command line that trains the same model; defaults are omitted. The history
    lists every command line that started or continued the run.
    """
    from nmtflex.report.info import describe_run

    found = describe_run(run)
    if json:
        write_line(json_format.dumps(found, ensure_ascii=False))
        return
    for name, text in _lines(found):
        write_line(visible(f"{name:<{WIDTH}} {text}"))


def _lines(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Return a name and a text for each line."""
    yield "run", found["run"]
    if made := found["made_by"]:
        yield "made by", ", ".join(f"{name} {version}" for name, version in made.items())
    data = found["data"]
    yield "data", f"{data['folder']}{'' if data['there'] else ' (no longer exists)'}"
    for side, own in found["languages"].items():
        subwords = f", {own['subwords']}" if own["subwords"] else ""
        yield (
            side,
            f"{own['language']}, tokenizer {own['tokenizer']}{subwords}, "
            f"{counted(own['vocabulary'], 'token')} in the vocabulary",
        )
    yield "options", found["options"]
    yield "parameters", _counts(found["parameters"]) if found["parameters"] else "no weights yet"
    yield "bytes", _counts(found["bytes"])
    yield "progress", _progress(found["progress"])
    yield "best", _best(found["best"])
    for number, past in enumerate(found["commands"]):
        start = f"{past['time']} update {past['update']:,}: "
        yield "history" if not number else "", start + past["command"]


def _counts(parts: dict[str, int]) -> str:
    """Return a total and its parts."""
    others = [f"{name} {count:,}" for name, count in parts.items() if name != "all"]
    return f"{parts['all']:,}: {', '.join(others)}"


def _progress(progress: dict[str, Any] | None) -> str:
    if progress is None:
        return "no training checkpoint"
    kept = ", ".join(f"{update:,}" for update in progress["checkpoints"])
    return (
        f"{counted(progress['update'], 'update')}, epoch {progress['epoch']}, "
        f"{progress['target_tokens']:,} target tokens, {progress['seconds']:,.0f} s "
        f"({progress['validation_seconds']:,.0f} s of that in validation); "
        f"checkpoints at updates {kept}"
    )


def _best(best: dict[str, Any] | None) -> str:
    if best is None:
        return "no validation yet"
    scores = [
        f"{label} {best[name]:.2f}"
        for name, label in (("bleu", "BLEU"), ("perplexity", "perplexity"))
        if name in best
    ]
    return f"update {best['update']:,}" + (f": {', '.join(scores)}" if scores else "")
