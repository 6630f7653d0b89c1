"""What goes to a person: messages and progress on standard error, tables on standard output."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.console import Console

from nmtflex.compiling import NOTICE_OF_COMPILING

stderr = Console(stderr=True, highlight=False)


def note(message: str) -> None:
    """Print one line for a person; markup in the message is text.

    Under --quiet a warning alone.
    """
    quiet = stderr.quiet
    stderr.quiet = quiet and not message.startswith("warning:")
    stderr.print(f"nmtflex: {message}", markup=False, soft_wrap=True)
    stderr.quiet = quiet


NOTICE_OF_COMPILING.tell = note


def write_line(text: str) -> None:
    """Write one line of the product to standard output."""
    sys.stdout.write(text + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table to standard output: ruled on a terminal, otherwise tab-separated lines."""
    if not sys.stdout.isatty():
        for row in (columns, *rows):
            write_line("\t".join(row))
        return
    from rich.table import Table

    table = Table()
    for column in columns:
        table.add_column(column, overflow="fold")  # a signature is shown whole
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)
