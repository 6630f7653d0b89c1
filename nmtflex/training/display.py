"""What a person sees while training: a live bar in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

QUIET_SECONDS = 30.0  # between lines where there is no terminal


class Display:
    """Progress of a training on standard error.

    Args:
        console: Where to.
        total: Updates of the whole training.
        done: Updates before this sitting.
    """

    def __init__(self, console: Console, total: int, done: int) -> None:
        self.console = console
        self.total = total
        self.live = console.is_terminal
        self.bar = Progress(
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not self.live,
        )
        self.task = self.bar.add_task("", total=total, completed=done, epoch=1, numbers="")
        self.began = self.marked = time.monotonic()
        self.first = done
        self.tokens = 0
        self.speed = 0.0

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.bar.stop()

    def advance(self, epoch: int, update: int, tokens: int, loss: float, norm: float) -> None:
        """Show an update: its target tokens, loss a token in nats, gradient norm."""
        self.tokens += tokens
        now = time.monotonic()
        passed = now - self.marked
        if self.live:
            if passed > 0.5 or not self.speed:
                self._measure(now)
            numbers = f"{self.speed:,.0f} tokens/s  loss {loss:.3f}  norm {norm:.2f}"
            self.bar.update(self.task, completed=update, epoch=epoch, numbers=numbers)
        elif passed > QUIET_SECONDS:
            self._measure(now)
            left = (now - self.began) / (update - self.first) * max(0, self.total - update)
            self.line(
                f"epoch {epoch}  update {update:,} of {self.total:,}  {self.speed:,.0f} tokens/s  "
                f"loss {loss:.3f}  norm {norm:.2f}  left {_clock(left)}"
            )

    def _measure(self, now: float) -> None:
        self.speed = self.tokens / (now - self.marked)
        self.marked, self.tokens = now, 0

    def pause(self) -> None:
        """Keep time spent on something else, a validation say, out of the speed."""
        self.marked, self.tokens = time.monotonic(), 0

    def line(self, text: str) -> None:
        """Print a line above the bar."""
        self.console.print(text, markup=False, soft_wrap=True)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
