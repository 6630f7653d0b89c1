"""``nmtflex export``."""

from __future__ import annotations

from nmtflex.cli.app import app, given_line
from nmtflex.cli.bind import command
from nmtflex.cli.console import note
from nmtflex.config import ExportConfig


@command(app, "export")
def export(config: ExportConfig) -> None:
    """Copy what translating needs of a run into a small folder, for other machines.

    The new run translates, is scored and served like any other. It has no checkpoints and no log,
    so its training cannot be resumed. Compare it with the old one by nmtflex eval RUN NEW.
    """
    from nmtflex.runs.commands import record_command
    from nmtflex.runs.export import export_run

    made = export_run(config)
    record_command(made.folder, given_line(), made.update)
    size, before = made.bytes / 1e6, made.before / 1e6
    note(f"{made.folder.path}: {size:.1f} MB of weights in {config.weights}, {before:.1f} before")
    if made.uncalibrated:
        note(
            f"warning: {config.base_run} is calibrated, and the rounded weights are not: run "
            f"nmtflex calibrate {made.folder.path}"
        )
