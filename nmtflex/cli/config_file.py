"""The ``--config`` file: TOML whose values become the defaults of a command's flags."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_origin

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

YAML = r"^[A-Za-z][\w-]*:(\s|$)"  # a line of it, which TOML never has
FILE, RUN = "nmtflex.file", "nmtflex.run"  # keys of the context's meta
Tables = dict[str, dict[str, Any]]
RunReader = Callable[[Path], dict[str, Any]]


class Given(NamedTuple):
    """What a ``--config`` file gives, or the run that a training goes on with."""

    values: dict[str, Any]  # plain options and the kinds of families
    tables: Tables  # [attention] and its like, as read


def _given(context: typer.Context, key: str) -> Given:
    found: Given = context.meta.get(key, Given({}, {}))
    return found


def remember(context: typer.Context, key: str, given: Given) -> None:
    """Make what a file or a run gives the defaults of a command; a file wins over a run."""
    context.meta[key] = given
    context.default_map = {**_given(context, RUN).values, **_given(context, FILE).values}


def tables_of(context: typer.Context) -> Tables:
    """Return the tables of the file that a command was given, or of its run."""
    return {**_given(context, RUN).tables, **_given(context, FILE).tables}


def is_in_file(context: typer.Context, name: str) -> bool:
    """Return whether the ``--config`` file gives an option, or a table of that name."""
    return name in _given(context, FILE).values


def drop_replaced(context: typer.Context, group: type[Config], values: dict[str, Any]) -> None:
    """Put back the defaults of what the file holds and a flag replaces; say so.

    Args:
        context: Of the command, which knows where each value comes from.
        group: Options, which name those that they replace.
        values: By name; changed in place.
    """
    options = options_of(group)
    layers = [
        [name for name in options if _is_given(context, name)],
        [name for name in options if is_in_file(context, name) and not _is_given(context, name)],
    ]
    lower = {name for name in context.default_map or {} if not _is_given(context, name)}
    for names in layers:
        lower -= set(names)
        for name in names:
            option = options[name][1]
            if not (replaced := [other for other in option.replaces if other in lower]):
                continue
            lower -= set(replaced)
            values |= {other: default_of(group, other) for other in replaced}
            told = [other for other in replaced if is_in_file(context, other)]
            if told:  # what was asked for makes way; a run gives what was not
                spelling = name.upper() if option.argument else flag_of(name, option)
                keys = " and ".join(other.replace("_", "-") for other in told)
                note(f"{spelling} replaces {keys} of the --config file")


def _is_given(context: typer.Context, name: str) -> bool:
    """Return whether an option stands on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def origin(context: typer.Context, path: Path | None, message: str) -> str:
    """Return how a message about flags ends: those of them that the file gives."""
    given = _given(context, FILE)
    in_tables = {name for table in given.tables.values() for name in table}
    words = re.findall(r"--[\w-]+", message)
    flags = [
        flag
        for parameter in context.command.params
        if parameter.name in {*given.values, *in_tables} and not _is_given(context, parameter.name)
        for flag in (*parameter.opts, *parameter.secondary_opts)
        if flag in words
    ]
    return f"; {path} gives {', '.join(flags)}" if flags else ""


def config_file_parameter(
    fields: dict[str, Any], words: dict[str, Mapping[str, int]], run_reader: RunReader | None
) -> inspect.Parameter:
    """Make ``--config``, which turns a file's values into the defaults of this command.

    Args:
        fields: What a file may hold, and its type.
        words: What may stand there for a number.
        run_reader: Reads the ``config.json`` of a run; None where a command does not train.
    """

    def read(context: typer.Context, path: Path | None) -> Path | None:
        if path is None or context.resilient_parsing:
            return path
        if path.suffix != ".json":
            given = read_options(path, _parse(path), fields, words)
        elif run_reader is not None:
            given = read_options(path, run_reader(path), fields, words)
        else:
            raise OptionError(
                f"--config {path}: a run's config.json is for nmtflex train and finetune; write "
                f"the options as a TOML file"
            )
        remember(context, FILE, given)
        return path

    families = [name for name, plain in fields.items() if is_kind(plain, Variant)]
    inside = f", those of a kind in the {' or '.join(families)} table" if families else ""
    run = ", or the config.json of a run" if run_reader else ""
    info = typer.Option(
        "--config",
        "-c",
        help=f"TOML file of options, named as the flags are{inside}{run}; a flag wins over it.",
        is_eager=True,
        callback=read,
    )
    return inspect.Parameter(
        "config",
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[Path | None, info],
    )


def read_options(
    path: Path, found: dict[str, Any], fields: dict[str, Any], words: dict[str, Mapping[str, int]]
) -> Given:
    """Check the options that a file holds: the values of plain ones and of kinds, and tables.

    Raises:
        OptionError: An unknown option or a value that it does not take.
    """
    values: dict[str, Any] = {}
    tables: Tables = {}
    for key, value in found.items():
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
    return Given(values, tables)


def _parse(path: Path) -> dict[str, Any]:
    """Return what the file holds.

    Raises:
        OptionError: No such file, or one that is not TOML.
    """
    text = ""
    try:
        text = path.read_text(encoding="utf-8-sig")  # editors may write a BOM
        found = tomllib.loads(text)
        _check_integers(found)
    except OSError as error:
        raise OptionError(f"--config {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise OptionError(f"{path}: not valid UTF-8") from error
    except (ValueError, RecursionError) as error:  # no TOML; or far too long or deep
        yaml = path.suffix in (".yaml", ".yml") or re.search(YAML, text, re.MULTILINE)
        remedy = "; it looks like YAML: write name = value, text in quotes" if yaml else ""
        raise OptionError(f"{path}: not a TOML file: {str(error)[:200]}{remedy}") from error
    return found


def _check_integers(value: Any) -> None:
    """Check that integers have 64 bits, as TOML says: Python writes no number of 4,300 digits.

    Raises:
        ValueError: One has more.
    """
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise ValueError("an integer has more than 64 bits")
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            _check_integers(part)


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
