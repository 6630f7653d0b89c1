"""Training progress: a live bar on a terminal, occasional lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Self

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from nmtflex.text.visible import visible
from nmtflex.training.validation import Sample, Validation

QUIET_SECONDS = 30.0  # between lines without a terminal
BLOCKS = "▁▂▃▄▅▆▇█"
CURVE = 40  # characters, at most
LONGEST = 200  # characters per sentence in a log; an untrained model may write very long ones
LEAST_BAR = 10  # characters


class _Still:
    """Content rendered only once per terminal width.

    The bar below it is refreshed ten times a second, and training must not wait for the display.

    Args:
        content: What to draw.
    """

    def __init__(self, content: RenderableType) -> None:
        self._content = content
        self._width = 0
        self._segments: list[Segment] = []

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the content, or reuse the last rendering."""
        if options.max_width != self._width:
            self._width = options.max_width
            self._segments = list(console.render(self._content, options))
        return self._segments


class _Bar(Progress):
    """A progress bar below the last validation."""

    validated: RenderableType | None = None

    def __init__(self, console: Console) -> None:
        epoch, speed, loss, norm, rate = (
            TextColumn(f"{{task.fields[{name}]}}")
            for name in ("epoch", "speed", "loss", "norm", "rate")
        )
        bar, elapsed = BarColumn(), TimeElapsedColumn()
        left = TextColumn("left"), TimeRemainingColumn()
        self._console = console
        self._every = (epoch, bar, MofNCompleteColumn(), speed, loss, norm, rate, elapsed, *left)
        self._least = (rate, norm, speed, elapsed, bar, loss)
        super().__init__(*self._every, console=console, disable=not console.is_terminal)

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return what to draw, from top to bottom."""
        if self.validated is not None:
            yield self.validated
        yield from super().get_renderables()

    def make_tasks_table(self, tasks: Iterable[Task]) -> Table:
        """Return the bar; on a narrow terminal, without its least important columns."""
        tasks = list(tasks)
        columns = list(self._every)
        for column in self._least:
            if sum(self._width(one, tasks) + 1 for one in columns) <= self._console.width + 1:
                break
            columns.remove(column)
        self.columns = tuple(columns)
        return super().make_tasks_table(tasks)

    def _width(self, column: ProgressColumn, tasks: Iterable[Task]) -> int:
        """Return the minimum width of a column, in characters."""
        if isinstance(column, BarColumn):
            return LEAST_BAR
        return max((self._console.measure(column(task)).maximum for task in tasks), default=0)


class Display:
    """Training progress on standard error.

    Args:
        console: Console to write to.
        total: Updates of the whole training.
        done: Updates made before this start.
        history: BLEU of the validations before this start.
    """

    def __init__(
        self, console: Console, total: int, done: int, history: Sequence[float] = ()
    ) -> None:
        self.console = console
        self.total = total
        self.live = console.is_terminal
        self.scores = list(history)
        self.bar = _Bar(console)
        self.task = self.bar.add_task(
            "", total=total, completed=done, epoch="epoch 1", speed="", loss="", norm="", rate=""
        )
        self.marked = time.monotonic()
        self.first: tuple[int, float] | None = None  # update, and time in seconds
        self.tokens = 0
        self.speed = 0.0

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def advance(
        self, epoch: int, update: int, tokens: int, loss: float, norm: float, rate: float
    ) -> None:
        """Show an update: target tokens, loss per token in nats, gradient norm, learning rate.

        The first update is not timed, because it includes compilation.
        """
        now = time.monotonic()
        passed, left = now - self.marked, ""
        due = passed > (0.5 if self.live else QUIET_SECONDS)
        if self.first is None:
            self.first, self.marked = (update, now), now
        else:
            self.tokens += tokens
            if due or (self.live and not self.speed):
                self.speed = self.tokens / max(passed, 1e-9)
                self.marked, self.tokens = now, 0
            first, began = self.first
            seconds = (now - began) / (update - first) * max(0, self.total - update)
            left = f"left {_clock(seconds)}"
        speed = f"{self.speed:,.0f} tokens/s" if self.speed else ""
        numbers: dict[str, Any] = {
            "speed": speed,
            "loss": f"loss {loss:.3f}",
            "norm": f"norm {norm:.2f}",
            "rate": f"lr {rate:.3g}",
        }
        if self.live:
            self.bar.update(self.task, completed=update, epoch=f"epoch {epoch}", **numbers)
        elif due:
            where = f"epoch {epoch}", f"update {update:,} of {self.total:,}"
            self.line("  ".join(filter(None, (*where, *numbers.values(), left))))

    def working(self, epoch: int, update: int, words: str = "") -> None:
        """Show the progress of a long task inside or after an update.

        Args:
            epoch: Current epoch.
            update: Last update made.
            words: The task and its progress; empty when it ends.
        """
        if self.live:
            shown = ", ".join(filter(None, (f"epoch {epoch}", words)))
            self.bar.update(self.task, epoch=shown)
        elif words and time.monotonic() - self.marked > QUIET_SECONDS:
            self.line(f"epoch {epoch}  update {update:,} of {self.total:,}  {words}")
            self.pause()

    def pause(self) -> None:
        """Exclude time spent on other tasks, such as validation, from the speed."""
        self.marked, self.tokens = time.monotonic(), 0

    def validation(self, text: str, result: Validation) -> None:
        """Show a validation: a summary line and some translations.

        On a terminal the translations stay above the bar, with a curve of BLEU so far and the
        perplexity, which falls while BLEU is still 0; elsewhere they are printed as lines.
        """
        self.scores.append(result.bleu)
        self.line(text)
        if self.live:
            room = (self.console.height - 5) // 4  # leaves room for the bar and some earlier lines
            samples = result.samples[: max(0, room)]
            self.bar.validated = _Still(_validated(self.scores, result.perplexity, samples))
            return
        for sample in result.samples:
            for name, value in sample._asdict().items():
                text = value if len(value) <= LONGEST else value[: LONGEST - 1] + "…"
                self.line(f"  {name:<11}  {visible(text)}")

    def line(self, text: str) -> None:
        """Print a line above the bar."""
        self.console.print(text, markup=False, soft_wrap=True)


def _validated(scores: Sequence[float], perplexity: float, samples: Sequence[Sample]) -> Table:
    """Return a BLEU curve, perplexity and translations, cut to the terminal's width."""
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    best = max(scores)
    table.add_row("valid BLEU", f"{sparkline(scores)}  {scores[-1]:.2f}, best {best:.2f}")
    table.add_row("perplexity", f"{perplexity:.2f}")
    for sample in samples:
        table.add_row()
        for name, value in sample._asdict().items():
            table.add_row(Text(name, "dim"), Text(visible(value)))
    return table


def sparkline(values: Sequence[float], width: int = CURVE) -> str:
    """Return a curve one character high, scaled from the lowest value to the highest.

    If there are more values than ``width``, each character shows the last value of its stretch.
    """
    count = min(width, len(values))
    drawn = [values[len(values) * (place + 1) // count - 1] for place in range(count)]
    low, high = min(drawn), max(drawn)
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(BLOCKS[round((value - low) * scale)] for value in drawn)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
