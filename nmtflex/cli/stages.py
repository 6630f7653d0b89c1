"""Commands with several stages: progress, timing and clean-up."""

from __future__ import annotations

import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from nmtflex.cli.console import note, stderr
from nmtflex.text.visible import counted

UNITS = {"learning BPE": "merge", "joining train": "sample"}  # what a stage counts, if not pairs


class Stages:
    """Shows and times the current stage; called now and then with its progress.

    Args:
        show: Called with the stage and the pairs (or other ``UNITS``) done in it.
    """

    def __init__(self, show: Callable[[str, int], None]) -> None:
        self._show = show
        self._began = self._marked = time.monotonic()
        self._stage = ""
        self.seconds: defaultdict[str, float] = defaultdict(float)  # by stage

    def __call__(self, stage: str, done: int) -> None:
        """Record that a stage begins or continues."""
        now = time.monotonic()
        self.seconds[self._stage] += now - self._marked
        self._stage, self._marked = stage, now
        self._show(stage, done)

    @property
    def total(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began


@contextmanager
def stages() -> Iterator[Stages]:
    """Show progress: live on a terminal, otherwise one line per stage."""
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    if not stderr.is_terminal:
        last = [""]

        def announce(stage: str, _done: int) -> None:
            if stage != last[0]:
                last[0] = stage
                note(stage)

        yield Stages(announce)
        return
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    # Refreshed by hand: a refresh thread would not be safe with forked worker processes.
    with Bar(*columns, console=stderr, auto_refresh=False, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def show(stage: str, done: int) -> None:
            what = counted(done, UNITS.get(stage, "pair"))
            bar.update(task, description=f"{stage}: {what}" if done else stage)
            bar.refresh()

        yield Stages(show)


@contextmanager
def cleaning_up() -> Iterator[None]:
    """Make SIGTERM remove unfinished output, as Ctrl-C does."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
