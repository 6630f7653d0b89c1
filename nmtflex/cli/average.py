"""``nmtflex average``."""

from __future__ import annotations

from nmtflex.cli.app import app, given_line
from nmtflex.cli.bind import command
from nmtflex.cli.console import note
from nmtflex.config import AverageConfig


@command(app, "average")
def average(config: AverageConfig) -> None:
    """Average the weights of a run's last checkpoints into a new run.

    The new run works like any other: it translates and can be scored, finetuned and reported on.
    Compare it with the old one by nmtflex eval --split valid. To have enough checkpoints, use
    train with a larger --keep.
    """
    from nmtflex.runs.commands import record_command
    from nmtflex.training.average import average_checkpoints

    made = average_checkpoints(config)
    record_command(made.folder, given_line(), made.updates[-1])
    updates = ", ".join(f"{update:,}" for update in made.updates)
    note(f"{made.folder.path}: the average of {config.base_run} at updates {updates}")
