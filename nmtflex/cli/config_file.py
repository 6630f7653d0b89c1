"""The ``--config`` file: TOML values that become the defaults of a command's flags."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
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

YAML = r"^[A-Za-z][\w-]*:(\s|$)"  # a line that is never valid TOML
Fields = dict[str, tuple[Any, Opt]]  # what a file may contain: type and option by name
RunReader = Callable[[Path], dict[str, Any]]


class Origin(IntEnum):
    """Source of an option's value; the lowest wins."""

    FLAG = 0
    FILE = 1  # --config
    PRESET = 2  # --preset
    RUN = 3  # the run to resume
    DEFAULT = 4


LAYERS = Origin.FILE, Origin.PRESET, Origin.RUN


def _given(context: typer.Context, source: Origin) -> dict[str, Any]:
    """Return the options that a file, a preset or a run sets."""
    found: dict[str, Any] = context.meta.get(f"nmtflex.{source.name}", {})
    return found


def remember(context: typer.Context, source: Origin, values: dict[str, Any]) -> None:
    """Use the values of a file, a preset or a run as defaults of a command.

    Those of ``Origin.DEFAULT`` stand for required options that are not given.
    """
    context.meta[f"nmtflex.{source.name}"] = values
    context.default_map = {
        name: value for one in reversed(Origin) for name, value in _given(context, one).items()
    }


def source_of(context: typer.Context, name: str) -> Origin:
    """Return the source of an option's value."""
    found = context.get_parameter_source(name)
    if found is not None and found.name == "COMMANDLINE":
        return Origin.FLAG
    return next((one for one in LAYERS if name in _given(context, one)), Origin.DEFAULT)


def make_way(context: typer.Context, group: type[Config], values: dict[str, Any]) -> None:
    """Reset options that a flag, the file or the preset overrides in lower layers, and report it.

    Args:
        context: Context of the command, which knows the source of each value.
        group: Options with the names of those they replace. A different kind replaces all options
            of the previous kind except those that every kind or another family's kind has, and
            those for which both kinds have the same default, such as --score; units of layers go
            too where they follow from an embedding's.
        values: Values of the group by name; changed in place.

    Raises:
        OptionError: There is no such kind.
    """
    options, kinds, gone = options_of(group), group.kinds_of(values), set[str]()
    for name in sorted(options, key=lambda name: source_of(context, name)):
        plain, option = options[name]
        here, value = source_of(context, name), values.get(name)
        if here > Origin.PRESET or name in gone:
            continue
        others: Iterable[str] = option.replaces
        if is_kind(plain, Variant):
            kept = {key for one in kinds if one != name for key in options_of(kinds[one])}
            kept |= plain.common() - kinds[name].usual(kinds, values).keys()
            others = [one for one in plain.owners() if one not in kept]
        replaced = []
        for other in others:
            there = source_of(context, other)
            if not here < there < Origin.DEFAULT or other in gone:
                continue
            before = _given(context, there).get(name, value)
            if option.replaces or _differs(
                other, plain.named(name, before), kinds[name], kinds, values
            ):
                replaced.append(other)
        gone.update(replaced)
        values |= {other: default_of(group, other) for other in replaced if other in options}
        values |= dict.fromkeys(other for other in replaced if other not in options)
        spelling = name.upper() if option.argument else flag_of(name, option)
        _report(context, f"{spelling} {value}" if is_kind(plain, Variant) else spelling, replaced)


def _differs(
    name: str,
    before: type[Variant],
    now: type[Variant],
    kinds: Mapping[str, type[Variant]],
    values: Mapping[str, Any],
) -> bool:
    """Return whether a kind lacks an option of the one before, or has another default for it.

    Args:
        name: The option.
        before: The previous kind.
        now: The chosen kind.
        kinds: The chosen kinds of all families.
        values: All options of the group by name.
    """
    if before is now:
        return False
    both = before, now
    if not all(name in options_of(kind) for kind in both):
        return True
    old, new = ((kind.usual(kinds, values).get(name), default_of(kind, name)) for kind in both)
    return old != new


def _report(context: typer.Context, spelling: str, replaced: list[str]) -> None:
    """Report what an option overrides in the file and in the preset; a run's values are no news."""
    for source, place in _places(context):
        reported = [name for name in replaced if source_of(context, name) is source]
        if reported:
            keys = " and ".join(name.replace("_", "-") for name in reported)
            note(f"{spelling} overrides {keys} in {place}")


def _places(context: typer.Context) -> list[tuple[Origin, str]]:
    """Return the sources that the command line names, in its words."""
    flags = (Origin.FILE, "config"), (Origin.PRESET, "preset")
    return [(source, f"--{flag} {context.params.get(flag)}") for source, flag in flags]


def origin(context: typer.Context, message: str) -> str:
    """Return the end of a message about flags: which of them the file or the preset sets."""
    words, found = re.findall(r"--[\w-]+", message), ""
    for source, place in _places(context):
        flags = [
            flag
            for parameter in context.command.params
            if parameter.name and source_of(context, parameter.name) is source
            for flag in (*parameter.opts, *parameter.secondary_opts)
            if flag in words
        ]
        found += f"; {place} sets {', '.join(flags)}" if flags else ""
    return found


def config_file_parameter(fields: Fields, run_reader: RunReader | None) -> inspect.Parameter:
    """Make ``--config``, which uses a file's values as the defaults of a command.

    Args:
        fields: What a file may contain.
        run_reader: Reads the ``config.json`` of a run; None if the command does not train.
    """

    def read(context: typer.Context, path: Path | None) -> Path | None:
        if path is None or context.resilient_parsing:
            return path
        if path.suffix != ".json":
            given = read_toml(path, fields)
        elif run_reader is not None:
            given = read_options(path, run_reader(path), fields)
        else:
            raise OptionError(
                f"--config {path}: only nmtflex train and finetune accept a run's config.json; "
                f"write the options in a TOML file"
            )
        remember(context, Origin.FILE, given)
        return path

    run = ", or a run's config.json" if run_reader else ""
    info = typer.Option(
        "--config",
        "-c",
        help=f"TOML file with options, named like the flags{run}; flags override it.",
        is_eager=True,
        callback=read,
    )
    return keyword("config", Annotated[Path | None, info], None)


def keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """Return a parameter for Typer to turn into an option."""
    only = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, only, default=default, annotation=annotation)


def read_toml(path: Path, fields: Fields) -> dict[str, Any]:
    """Return the options of a TOML file flat, as flags set them.

    Raises:
        OptionError: The file is not TOML, or an option is unknown or not valid.
    """
    return read_options(path, parse_toml(path), fields)


def read_options(path: Path, found: dict[str, Any], fields: Fields) -> dict[str, Any]:
    """Check the options in a file and return them flat, as flags set them.

    Options of a kind may be inside or outside the table of their family.

    Raises:
        OptionError: An option is unknown or its value is not valid.
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


def parse_toml(path: Path, flag: str = "--config ") -> dict[str, Any]:
    """Return the contents of a TOML file, which a flag names in messages.

    Raises:
        OptionError: The file cannot be read or is not TOML.
    """
    text = ""
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors write a BOM
        found = tomllib.loads(text)
        _check_integers(found)
    except OSError as error:
        raise OptionError(f"{flag}{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise OptionError(f"{path}: not valid UTF-8") from error
    except (ValueError, RecursionError) as error:  # not TOML, or far too long or deep
        yaml = path.suffix in (".yaml", ".yml") or re.search(YAML, text, re.MULTILINE)
        remedy = "; it looks like YAML: write name = value, with text in quotes" if yaml else ""
        raise OptionError(f"{path}: not a TOML file: {str(error)[:200]}{remedy}") from error
    return found


def _check_integers(value: Any) -> None:
    """Check that integers fit in 64 bits, as TOML demands; Python cannot print 4,300 digits.

    Raises:
        ValueError: An integer is larger.
    """
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise ValueError("an integer does not fit in 64 bits")
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            _check_integers(part)


def _checked(name: str, plain: Any, option: Opt, value: Any) -> Any:
    """Return the value of an option for Typer; for a family, a table.

    Raises:
        OptionError: The value is not valid.
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
