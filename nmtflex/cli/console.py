"""Output for people: messages and progress on standard error, tables on standard output."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console

from nmtflex.compiling import NOTICE_OF_COMPILING

stderr = Console(stderr=True, highlight=False)


def note(message: str) -> None:
    """Print one line on standard error, with markup as text; with --quiet, only warnings."""
    quiet = stderr.quiet
    stderr.quiet = quiet and not message.startswith("warning:")
    stderr.print(f"nmtflex: {message}", markup=False, soft_wrap=True)
    stderr.quiet = quiet


NOTICE_OF_COMPILING.tell = note


def write_line(text: str) -> None:
    """Write one line of results to standard output."""
    sys.stdout.write(text + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table to standard output: with rules on a terminal, otherwise tab-separated."""
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            write_line("\t".join(row))
        return
    from rich.table import Table

    table = Table()
    for column in columns:
        table.add_column(column, overflow="fold")  # never cut a signature
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)
