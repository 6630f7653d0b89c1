"""Layout of ``--help``: complete option names at any width, and docstrings as flowing text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand


class HelpfulCommand(TyperCommand):
    """A command whose help never truncates option names."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help as Typer does, but with ``OptionTable``."""
        from typer import rich_utils  # slow to import

        # Typer has no setting for this: it shrinks all columns, and truncates names.
        names = vars(rich_utils)
        usual = names["Table"]
        names["Table"] = OptionTable
        try:
            super().format_help(ctx, formatter)
        finally:
            names["Table"] = usual


class OptionTable(Table):
    """Typer's rows, one per option, with the help text below the other cells."""

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> Iterator[Any]:
        """Lay out the rows without columns, which would not all fit."""
        for *names, help_text in zip(*(column.cells for column in self.columns), strict=True):
            yield Text(" ").join(name for name in names if isinstance(name, Text) and name)
            yield Padding(help_text, (0, 0, 0, 4))


def unwrap(text: str) -> str:
    """Join the lines of each paragraph; list items and indented lines are kept."""
    lines: list[str] = []
    for line in text.splitlines():
        flows = line and not re.match(r"\s|[-*] |\d+\. ", line)
        if flows and lines and lines[-1] and not lines[-1][0].isspace():
            lines[-1] += f" {line}"
        else:
            lines.append(line)
    return "\n".join(lines)
