"""The ``--config`` file: TOML whose values become the defaults of a command's flags."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Iterable
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any, get_origin

import typer

from nmtflex.cli.console import note
from nmtflex.config import (
    Config,
    Opt,
    Variant,
    default_of,
    flag_of,
    flattened,
    is_kind,
    nearest,
    options_of,
    revive,
)
from nmtflex.errors import OptionError

YAML = r"^[A-Za-z][\w-]*:(\s|$)"  # a line of it, which TOML never has
Fields = dict[str, tuple[Any, Opt]]  # what a file may hold: the type and the option of each name
RunReader = Callable[[Path], dict[str, Any]]


class Origin(IntEnum):
    """Where the value of an option comes from; a lower one wins."""

    FLAG = 0
    FILE = 1  # --config
    RUN = 2  # the one that a training goes on with
    DEFAULT = 3


def _given(context: typer.Context, source: Origin) -> dict[str, Any]:
    """Return the options that the file, or the run, gives."""
    found: dict[str, Any] = context.meta.get(f"nmtflex.{source.name}", {})
    return found


def remember(context: typer.Context, source: Origin, values: dict[str, Any]) -> None:
    """Make what a file or a run gives the defaults of a command; a file wins over a run."""
    context.meta[f"nmtflex.{source.name}"] = values
    context.default_map = {**_given(context, Origin.RUN), **_given(context, Origin.FILE)}


def source_of(context: typer.Context, name: str) -> Origin:
    """Return where the value of an option comes from."""
    found = context.get_parameter_source(name)
    if found is not None and found.name == "COMMANDLINE":
        return Origin.FLAG
    layers = (Origin.FILE, Origin.RUN)
    return next((one for one in layers if name in _given(context, one)), Origin.DEFAULT)


def make_way(context: typer.Context, group: type[Config], values: dict[str, Any]) -> None:
    """Put back the defaults of what a flag, or the file, replaces in the layers below; say so.

    Args:
        context: Of the command, which knows where each value comes from.
        group: Options, which name those that they replace. Another kind replaces all options of
            the one that was there, but for those that every kind has.
        values: By name; changed in place.
    """
    options, gone = options_of(group), set[str]()
    for name in sorted(options, key=lambda name: source_of(context, name)):
        plain, option = options[name]
        here, value = source_of(context, name), values.get(name)
        if here > Origin.FILE or name in gone:
            continue
        others: Iterable[str] = option.replaces
        if is_kind(plain, Variant):
            others = [other for other in plain.owners() if other not in plain.common()]
        replaced = []
        for other in others:
            there = source_of(context, other)
            another = option.replaces or _given(context, there).get(name, value) != value
            if here < there < Origin.DEFAULT and other not in gone and another:
                replaced.append(other)
        gone.update(replaced)
        values |= {other: default_of(group, other) for other in replaced if other in options}
        values |= dict.fromkeys(other for other in replaced if other not in options)
        # What was asked for makes way audibly; a run gives what was not.
        told = [other for other in replaced if source_of(context, other) is Origin.FILE]
        if told:
            spelling = name.upper() if option.argument else flag_of(name, option)
            kind = f" {value}" if is_kind(plain, Variant) else ""
            keys = " and ".join(other.replace("_", "-") for other in told)
            note(f"{spelling}{kind} replaces {keys} of the --config file")


def origin(context: typer.Context, path: Path | None, message: str) -> str:
    """Return how a message about flags ends: those of them that the file gives."""
    words = re.findall(r"--[\w-]+", message)
    flags = [
        flag
        for parameter in context.command.params
        if parameter.name and source_of(context, parameter.name) is Origin.FILE
        for flag in (*parameter.opts, *parameter.secondary_opts)
        if flag in words
    ]
    return f"; {path} gives {', '.join(flags)}" if flags else ""


def config_file_parameter(fields: Fields, run_reader: RunReader | None) -> inspect.Parameter:
    """Make ``--config``, which turns a file's values into the defaults of this command.

    Args:
        fields: What a file may hold.
        run_reader: Reads the ``config.json`` of a run; None where a command does not train.
    """

    def read(context: typer.Context, path: Path | None) -> Path | None:
        if path is None or context.resilient_parsing:
            return path
        if path.suffix != ".json":
            given = read_options(path, _parse(path), fields)
        elif run_reader is not None:
            given = read_options(path, run_reader(path), fields)
        else:
            raise OptionError(
                f"--config {path}: a run's config.json is for nmtflex train and finetune; write "
                f"the options as a TOML file"
            )
        remember(context, Origin.FILE, given)
        return path

    run = ", or the config.json of a run" if run_reader else ""
    info = typer.Option(
        "--config",
        "-c",
        help=f"TOML file of options, named as the flags are{run}; a flag wins over it.",
        is_eager=True,
        callback=read,
    )
    return keyword("config", Annotated[Path | None, info], None)


def keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """Return a parameter that Typer makes an option of."""
    only = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, only, default=default, annotation=annotation)


def read_options(path: Path, found: dict[str, Any], fields: Fields) -> dict[str, Any]:
    """Check the options that a file holds; return them as flags give them.

    Options of a kind stand in the table of their family, or beside it.

    Raises:
        OptionError: An unknown option or a value that it does not take.
    """
    values = {}
    try:
        for key, value in found.items():
            name = key.replace("-", "_")
            if name not in fields:
                raise OptionError(f"unknown option {key!r}{nearest(name, fields)}")
            values[name] = _checked(name, *fields[name], value)
        return flattened(values)
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from error


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


def _checked(name: str, plain: Any, option: Opt, value: Any) -> Any:
    """Return the value of an option, as Typer reads it; of a family a table.

    Raises:
        OptionError: The option does not take it.
    """
    if is_kind(plain, Variant):
        table = value if isinstance(value, dict) else {"kind": value}
        value = {key.replace("-", "_"): item for key, item in table.items()}
    elif type(value) in (int, float) and plain in (str, str | None):
        value = str(value)  # validate-every = 500, tau = 1.2, without quotes
    elif isinstance(value, str) and value in option.words:
        return value
    elif get_origin(plain) is list and not isinstance(value, list):
        value = [value]
    revive(name, plain, value)
    return value
