"""``nmtflex preprocess``."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from nmtflex.cli.app import app
from nmtflex.cli.bind import command
from nmtflex.cli.console import note, stderr
from nmtflex.config import PreprocessConfig

if TYPE_CHECKING:
    from nmtflex.corpus.prepare import Progress


@command(app, "preprocess")
def preprocess(config: PreprocessConfig) -> None:
    """Make a prepared folder from raw parallel text."""
    from nmtflex.corpus.prepare import prepare

    started = time.monotonic()
    with _cleaning_up(), _progress() as progress:
        corpus = prepare(config, progress)
    for line in _report(corpus.manifest):
        note(line)
    note(f"{config.out}: made in {time.monotonic() - started:.1f} seconds")


@contextmanager
def _cleaning_up() -> Iterator[None]:
    """Make SIGTERM remove what is half made, as Ctrl-C does."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show what is being done: live on a terminal, else one line when a new thing begins."""
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    if not stderr.is_terminal:
        last = [""]

        def tell(stage: str, _done: int) -> None:
            if stage != last[0]:
                last[0] = stage
                note(stage)

        yield tell
        return
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    # Refreshed by hand: no thread of its own, since worker processes are forked meanwhile.
    with Bar(*columns, console=stderr, auto_refresh=False, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def show(stage: str, done: int) -> None:
            bar.update(task, description=f"{stage}: {done:,} pairs" if done else stage)
            bar.refresh()

        yield show


def _report(manifest: dict[str, Any]) -> Iterator[str]:
    """Say what was read, kept and dropped, and what vocabularies came of it."""
    from nmtflex.corpus.filters import describe_reasons

    reasons = describe_reasons(**manifest["filter"])
    limit = manifest["options"]["max_pairs"]
    for files in manifest["inputs"].values():
        for file in files:
            if not file["pairs"]:
                yield f"{file['path']}: not read: --max-pairs {limit:,} was reached before it"
            elif file["byte_order_mark"]:
                yield f"{file['path']}: dropped a byte-order mark at its start"
    for name, split in manifest["splits"].items():
        if name == "train":
            yield f"{name}: {_counts(split, reasons, limit)}; {_unknown(split)}"
        else:
            yield f"{name}: {_counts(split)}; {_unknown(split)}"
    pipeline = manifest["pipeline"]
    sides = [
        f"{pipeline[side]['vocabulary']:,} {side}"
        + (f" ({pipeline[side]['bpe']:,} BPE merges)" if pipeline[side]["bpe"] is not None else "")
        for side in ("source", "target")
    ]
    yield f"vocabulary{' (joint)' if pipeline['joint'] else ''}: {', '.join(sides)}"


def _counts(split: dict[str, Any], reasons: dict[str, str] | None = None, limit: int = 0) -> str:
    """Say how many pairs of a split were read, kept and dropped, of training for what reasons."""
    read, dropped = f"{split['read']:,} pairs read", split["dropped"]
    if limit:
        full = split["read"] == limit
        read += " (the first ones)" if full else f" (all; --max-pairs is {limit:,})"
    counts = f"{read}, {split['kept']:,} kept, {sum(dropped.values()):,} dropped"
    if reasons:
        counts += f" ({', '.join(f'{dropped[key]:,} {words}' for key, words in reasons.items())})"
    return counts


def _unknown(split: dict[str, Any]) -> str:
    """Say how many tokens of a split are not in the vocabulary."""
    shares = [
        f"{100 * split[side]['unknown'] / max(1, split[side]['tokens']):.2f} % {side}"
        for side in ("source", "target")
    ]
    return f"unknown tokens: {', '.join(shares)}"
