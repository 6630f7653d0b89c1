"""Turn option groups (``nmtflex.config``) into the flags of a command.

A command is a function whose parameters are config classes; its flags are their fields. A field
that is a family (``Variant``) becomes one flag that chooses the kind, and each kind's own options
stand in a help panel of their own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, get_args, get_type_hints

import typer
from rich.markup import escape

from nmtflex.cli.config_file import (
    config_file_parameter,
    drop_replaced,
    is_in_file,
    origin,
    tables_of,
)
from nmtflex.cli.console import note, stderr
from nmtflex.cli.help import HelpfulCommand, unwrap
from nmtflex.cli.run_options import check_folders, take_from_run
from nmtflex.config import Config, Opt, Variant, default_of, flag_of, is_kind, nearest, options_of
from nmtflex.errors import OptionError


def command(app: typer.Typer, name: str, **settings: Any) -> Callable[..., Callable[..., Any]]:
    """Register a function as ``nmtflex NAME``, its flags made of its config parameters."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        text = escape(unwrap(inspect.getdoc(function) or ""))
        app.command(name, **{"help": text, "cls": HelpfulCommand, **settings})(bind(function))
        return function

    return register


def bind(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with one parameter an option, which builds the configs and calls."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, type[Config]] = {}
    parameters: list[inspect.Parameter] = []
    fields: dict[str, Any] = {}  # what a --config file may hold, and its type
    words: dict[str, Mapping[str, int]] = {}  # what may stand there for a number
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints[name]
        if is_kind(hint, Config):
            groups[name] = hint
            parameters += _parameters_of(hint)
            fields |= {field: plain for field, (plain, _) in options_of(hint).items()}
            words |= {field: option.words for field, (_, option) in options_of(hint).items()}
        else:
            parameters.append(parameter.replace(annotation=hint, kind=parameter.KEYWORD_ONLY))
            fields[name] = get_args(hint)[0] if hasattr(hint, "__metadata__") else hint
    # Positional arguments first, in the order of the groups; Typer reads them from the signature.
    parameters.sort(key=lambda parameter: not _is_argument(parameter))
    fields["quiet"] = bool
    reader = take_from_run(parameters, list(groups.values()), fields, words)
    common = [config_file_parameter(fields, words, reader), _quiet_parameter()]
    parameters = [_context_parameter(), *parameters, *common]

    @functools.wraps(function)
    def call(context: typer.Context, **values: Any) -> Any:
        path = values.pop("config")
        stderr.quiet = values.pop("quiet")
        built, faults = {}, []
        for name, group in groups.items():
            drop_replaced(context, group, values)
            try:
                check_folders(context, group, values)
                built[name] = _build(group, values, context)
            except OptionError as error:
                faults.append(str(error))
        if faults:
            message = "; ".join(faults)
            raise OptionError(message + origin(context, path, message))
        return function(**values, **built)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in parameters}
    return call


def _is_argument(parameter: inspect.Parameter) -> bool:
    metadata = getattr(parameter.annotation, "__metadata__", ())
    return any(isinstance(item, typer.models.ArgumentInfo) for item in metadata)


def _parameters_of(group: type[Config]) -> list[inspect.Parameter]:
    """Return the command-line parameters of one option group."""
    panel = (group.__doc__ or "").strip().splitlines()[0].rstrip(".")
    parameters = []
    for name, (plain, option) in options_of(group).items():
        default = default_of(group, name)
        if is_kind(plain, Variant):
            parameters += _family_parameters(name, plain, option, default.kind, panel)
        else:
            parameters.append(_parameter(name, plain, option, default, panel))
    return parameters


def _parameter(name: str, plain: Any, option: Opt, default: Any, panel: str) -> inspect.Parameter:
    """Make one Typer parameter; bounds are ours, so that a file and Python meet them too."""
    text = escape(option.help)  # Typer reads square brackets as markup
    info: Any
    if option.argument:
        info = typer.Argument(help=text, metavar=name.upper())
    else:
        flag = flag_of(name, option)
        if plain in (bool, bool | None) and option.flag is None:
            flag += f"/--no-{flag[2:]}"
        reader: dict[str, Any] = {}
        if option.words:
            reader = {"parser": _reader_of(option), "metavar": "|".join(["INTEGER", *option.words])}
        info = typer.Option(flag, *option.also, help=text, rich_help_panel=panel, **reader)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is dataclasses.MISSING else default,
        annotation=Annotated[plain, info],
    )


def _reader_of(option: Opt) -> Callable[[str], int]:
    """Return what reads a whole number, or a word in the place of one."""

    def number_or_word(text: str) -> int:
        if text in option.words:
            return option.words[text]
        with contextlib.suppress(ValueError):
            if (number := int(text)) not in option.words.values():
                return number
        raise typer.BadParameter(f"{text!r} is no whole number and not {', '.join(option.words)}")

    return number_or_word


def _family_parameters(
    name: str, family: type[Variant], option: Opt, default: str, panel: str
) -> list[inspect.Parameter]:
    """Make the flag that chooses a kind, and every kind's own options, default "not given"."""
    kinds = family.variants()
    parameters = [_parameter(name, Literal[tuple(kinds)], option, default, panel)]
    for field, owners in family.owners().items():
        plain, own = options_of(kinds[owners[0]])[field]
        if (usual := default_of(kinds[owners[0]], field)) is not None:
            own = dataclasses.replace(own, help=f"{own.help} (default {usual})")
        own_panel = f"{name.capitalize()}: {', '.join(owners)}"
        parameters.append(_parameter(field, plain | None, own, None, own_panel))
    return parameters


def _build(group: type[Config], values: dict[str, Any], context: typer.Context) -> Config:
    """Take a group's fields out of ``values`` and build it."""
    fields: dict[str, Any] = {}
    for name, (plain, _) in options_of(group).items():
        if is_kind(plain, Variant):
            fields[name] = _build_variant(name, plain, values, context)
        else:
            fields[name] = values.pop(name)
    return group(**fields)


def _build_variant(
    name: str, family: type[Variant], values: dict[str, Any], context: typer.Context
) -> Variant:
    """Build the chosen kind; an option that only other kinds have is an error that says whose."""
    kinds = family.variants()
    given = [field for field in family.owners() if values[field] is not None]
    kind = family.kind_for(values.pop(name), given)
    own = options_of(kinds[kind])
    table = tables_of(context).get(name, {"kind": kind})
    if table["kind"] != kind:
        if is_in_file(context, name):
            note(f"--{name} {kind} replaces the whole [{name}] table of the --config file")
        table = {}
    fields = {key: value for key, value in table.items() if key != "kind"}
    for field, owners in family.owners().items():
        value = values.pop(field)
        if value is None:
            continue
        if field not in own:
            flag = flag_of(field, options_of(kinds[owners[0]])[field][1])
            known = [flag_of(key, option) for key, (_, option) in own.items()]
            raise OptionError(
                f"{flag} belongs to --{name} {' and '.join(owners)}, not to {kind}"
                f"{nearest(flag, known)}"
            )
        fields[field] = value
    return kinds[kind].from_dict(fields)


def refuse(why: str, *groups: Config) -> None:
    """Refuse what is given of option groups that have no effect.

    Args:
        why: How the message ends: "is for ...".
        groups: As a command got them; what differs from the default was given.

    Raises:
        OptionError: Something was given.
    """
    for group in groups:
        for name, (_, option) in options_of(type(group)).items():
            if (value := getattr(group, name)) != getattr(type(group)(), name):
                shown = "" if isinstance(value, bool) else f" {value}"
                raise OptionError(f"{flag_of(name, option)}{shown} {why}")


def _quiet_parameter() -> inspect.Parameter:
    info = typer.Option(
        "--quiet", "-q", help="Show no progress and no remarks; warnings and errors remain."
    )
    return inspect.Parameter(
        "quiet",
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[bool, info],
    )


def _context_parameter() -> inspect.Parameter:
    return inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
