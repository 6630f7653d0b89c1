"""``nmtflex average``."""

from __future__ import annotations

from nmtflex.cli.app import app, given_line
from nmtflex.cli.bind import command
from nmtflex.cli.console import note
from nmtflex.config import AverageConfig


@command(app, "average")
def average(config: AverageConfig) -> None:
    """Average the weights of a run's last checkpoints, as a new run.

    The new run translates, and can be scored, finetuned and reported on as any other; compare it
    with the old one by nmtflex eval --split valid. train keeps as many checkpoints as its --keep
    says.
    """
    from nmtflex.runs.commands import record_command
    from nmtflex.training.average import average_checkpoints

    made = average_checkpoints(config)
    record_command(made.folder, given_line(), made.updates[-1])
    updates = ", ".join(f"{update:,}" for update in made.updates)
    note(f"{made.folder.path}: the mean of {config.base_run} at updates {updates}")
