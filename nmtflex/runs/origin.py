"""The learning curve of a run that begins after the training of its base run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nmtflex.errors import RunError
from nmtflex.files import file_hash
from nmtflex.runs.folder import RunFolder, read_run_config
from nmtflex.runs.metrics import MetricsRow, read_metrics
from nmtflex.runs.weights import best_update

MOST = 20  # base runs of base runs that are followed


class Start(NamedTuple):
    """The training that a run's initial weights had before."""

    update: int = 0
    seconds: float = 0.0


def read_curve(folder: RunFolder) -> list[MetricsRow]:
    """Read a run's ``metrics.csv``; updates and seconds count from the first base run's beginning.

    If the base run is gone or has changed, the run counts from its own beginning.

    Raises:
        RunError: The run has no metrics, or damaged ones.
    """
    start = start_of(folder)
    return [
        row._replace(update=row.update + start.update, seconds=row.seconds + start.seconds)
        for row in read_metrics(folder)
    ]


def start_of(folder: RunFolder, depth: int = MOST) -> Start:
    """Return the training behind a run's initial weights, as far as its base run is available.

    Raises:
        RunError: The run or its base is damaged.
    """
    base = _base(folder)
    if base is None or not depth:
        return Start()
    before, update = start_of(base, depth - 1), best_update(base)
    rows = read_metrics(base) if base.metrics.is_file() else []
    seconds = max((row.seconds for row in rows if row.update <= update), default=0.0)
    return Start(before.update + update, before.seconds + seconds)


def _base(folder: RunFolder) -> RunFolder | None:
    """Return the run that another one began with, if it exists and is unchanged."""
    config = read_run_config(folder)
    wanted = config.get("base")
    if not isinstance(wanted, str):
        return None
    train = config.get("train", {})
    for path in _places(folder, train.get("base_run", train.get("init_from"))):
        base = RunFolder(path)
        try:
            if base.best.is_file() and file_hash(base.best) == wanted:
                return base
        except OSError as error:
            raise RunError(f"{base.best}: {error.strerror}") from error
    return None


def _places(folder: RunFolder, named: object) -> Iterator[Path]:
    """Yield where a base run may be: its recorded path, or beside the run."""
    if isinstance(named, str):
        yield Path(named)
        yield folder.path.resolve().parent / Path(named).name
