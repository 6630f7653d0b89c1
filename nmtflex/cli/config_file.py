"""The ``--config`` file: TOML whose values become the defaults of a command's flags."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, get_origin

import typer

from nmtflex.cli.console import note
from nmtflex.config import (
    Config,
    Variant,
    default_of,
    flag_of,
    is_kind,
    nearest,
    options_of,
    revive,
)
from nmtflex.errors import OptionError

FILE_TABLES = "nmtflex.tables"  # key of the context's meta: [attention] and its like, as read
Tables = dict[str, dict[str, Any]]


def tables_of(context: typer.Context) -> Tables:
    """Return the tables of the file that a command was given; none without a file."""
    found: Tables = context.meta.get(FILE_TABLES, {})
    return found


def drop_replaced(context: typer.Context, group: type[Config], values: dict[str, Any]) -> None:
    """Put back the defaults of what the file holds and a flag replaces; say so.

    Args:
        context: Of the command, which knows where each value comes from.
        group: Options, which name those that they replace.
        values: By name; changed in place.
    """
    options = options_of(group)
    flags = {name: option for name, (_, option) in options.items() if _is_given(context, name)}
    in_file = {name for name in context.default_map or {} if not _is_given(context, name)}
    for name, option in flags.items():
        if replaced := [other for other in option.replaces if other in in_file]:
            in_file -= set(replaced)
            values |= {other: default_of(group, other) for other in replaced}
            spelling = name.upper() if option.argument else flag_of(name, option)
            keys = " and ".join(other.replace("_", "-") for other in replaced)
            note(f"{spelling} replaces {keys} of the --config file")


def _is_given(context: typer.Context, name: str) -> bool:
    """Return whether an option stands on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def origin(context: typer.Context, path: Path | None, message: str) -> str:
    """Return how a message about flags ends: those of them that the file gives."""
    in_tables = {name for table in tables_of(context).values() for name in table}
    words = re.findall(r"--[\w-]+", message)
    flags = [
        flag
        for parameter in context.command.params
        if parameter.name in {*(context.default_map or {}), *in_tables}
        and not _is_given(context, parameter.name)
        for flag in (*parameter.opts, *parameter.secondary_opts)
        if flag in words
    ]
    return f"; {path} gives {', '.join(flags)}" if flags else ""


def config_file_parameter(
    fields: dict[str, Any], words: dict[str, Mapping[str, int]]
) -> inspect.Parameter:
    """Make ``--config``, which turns a file's values into the defaults of this command.

    Args:
        fields: What a file may hold, and its type.
        words: What may stand there for a number.
    """

    def read(context: typer.Context, path: Path | None) -> Path | None:
        if path is not None and not context.resilient_parsing:
            context.default_map, context.meta[FILE_TABLES] = _read_options(path, fields, words)
        return path

    families = [name for name, plain in fields.items() if is_kind(plain, Variant)]
    inside = f", those of a kind in the {' or '.join(families)} table" if families else ""
    info = typer.Option(
        "--config",
        "-c",
        help=f"TOML file of options, named as the flags are{inside}; a flag wins over it.",
        is_eager=True,
        callback=read,
    )
    return inspect.Parameter(
        "config",
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[Path | None, info],
    )


def _read_options(
    path: Path, fields: dict[str, Any], words: dict[str, Mapping[str, int]]
) -> tuple[dict[str, Any], Tables]:
    """Read a TOML file: the values of plain options and of kinds, and the families' tables.

    Raises:
        OptionError: No such file, no TOML, an unknown option or a value that it does not take.
    """
    values: dict[str, Any] = {}
    tables: Tables = {}
    for key, value in _parse(path).items():
        name = key.replace("-", "_")
        try:
            if name not in fields:
                raise OptionError(f"unknown option {key!r}{_remedy(name, fields)}")
            if is_kind(fields[name], Variant):
                tables[name] = _table(name, fields[name], value)
                values[name] = tables[name]["kind"]
            elif isinstance(value, str) and value in words.get(name, {}):
                values[name] = value
            else:
                values[name] = _value(name, fields[name], value)
        except OptionError as error:
            raise OptionError(f"{path}: {error}") from error
    return values, tables


def _parse(path: Path) -> dict[str, Any]:
    """Return what the file holds."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))  # editors may write a BOM
    except OSError as error:
        raise OptionError(f"--config {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise OptionError(f"{path}: not valid UTF-8") from error
    except (ValueError, RecursionError) as error:  # no TOML; or far too long or deep
        raise OptionError(f"{path}: not a TOML file: {error}") from error


def _remedy(name: str, fields: dict[str, Any]) -> str:
    """Return how a message about an unknown option ends: where it belongs, or what was meant."""
    for family, plain in fields.items():
        if is_kind(plain, Variant) and name in plain.owners():
            return f"; it belongs in the [{family}] table"
    return nearest(name, fields)


def _table(name: str, family: type[Variant], value: Any) -> dict[str, Any]:
    """Return the options of a kind, given as a table or as its name alone."""
    table = value if isinstance(value, dict) else {"kind": value}
    table = {key.replace("-", "_"): item for key, item in table.items()}
    revive(name, family, table)
    return table


def _value(name: str, plain: Any, value: Any) -> Any:
    """Return the value of a plain option, as Typer reads it."""
    if type(value) in (int, float) and plain in (str, str | None):
        value = str(value)  # validate-every = 500, tau = 1.2, without quotes
    if get_origin(plain) is list and not isinstance(value, list):
        value = [value]
    revive(name, plain, value)
    return value
