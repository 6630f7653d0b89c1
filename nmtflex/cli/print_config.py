"""``--print-config``: the effective options of a command as a file for ``--config``."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from nmtflex.cli.config_file import Origin, keyword, remember
from nmtflex.cli.console import write_line
from nmtflex.config import Config
from nmtflex.config.toml import toml_of

NOWHERE = Path(os.devnull)  # in place of a required folder; there is no run in it


def print_config_parameter(parameters: list[inspect.Parameter]) -> inspect.Parameter:
    """Make ``--print-config``, with which no option is required.

    Args:
        parameters: Those of the command; the required ones are paths.
    """
    required = [one.name for one in parameters if one.default is inspect.Parameter.empty]

    def read(context: typer.Context, printing: bool) -> bool:
        if printing:
            remember(context, Origin.DEFAULT, dict.fromkeys(required, NOWHERE))
        return printing

    info = typer.Option(
        "--print-config",
        help="Print the options that the other flags, --config and the run amount to as a file for "
        "--config, and exit.",
        is_eager=True,
        callback=read,
    )
    return keyword("print_config", Annotated[bool, info], False)


def print_options(groups: Iterable[Config]) -> None:
    """Print option groups as TOML, without required options that were not given."""
    write_line(toml_of(groups, left_out=NOWHERE))
