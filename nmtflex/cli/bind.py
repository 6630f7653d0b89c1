"""Creation of a command's flags from option groups (``nmtflex.config``).

A command is a function whose parameters are config classes; their fields become its flags. A named
tuple of config classes, such as ``Decoding``, stands for all of them. A field that is a family
(``Variant``) becomes one flag that selects the kind, and each kind's options get a help panel.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args, get_type_hints

import typer
from rich.markup import escape

from nmtflex.cli.config_file import Fields, config_file_parameter, keyword, make_way, origin
from nmtflex.cli.console import stderr
from nmtflex.cli.help import HelpfulCommand, unwrap
from nmtflex.cli.presets import preset_parameter
from nmtflex.cli.print_config import print_config_parameter, print_options
from nmtflex.cli.run_options import check_folders, take_from_run
from nmtflex.config import (
    Config,
    Opt,
    TrainConfig,
    Variant,
    all_options_of,
    default_of,
    flag_of,
    is_kind,
    options_of,
)
from nmtflex.errors import OptionError

SHARED = ("config", "preset", "print_config", "quiet")  # options that no group has


def command(app: typer.Typer, name: str, **settings: Any) -> Callable[..., Callable[..., Any]]:
    """Register a function as ``nmtflex NAME``, with flags from its config parameters."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        text = escape(unwrap(inspect.getdoc(function) or ""))
        app.command(name, **{"help": text, "cls": HelpfulCommand, **settings})(bind(function))
        return function

    return register


def bind(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that it takes one parameter per option and builds the configs."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, type[Config]] = {}
    parameters: list[inspect.Parameter] = []
    fields: Fields = {}
    bundles: dict[str, Any] = {}  # named tuples of groups
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints[name]
        if own := _groups(name, hint):
            bundles |= {name: hint} if is_kind(hint, tuple) else {}
            groups |= own
            for group in own.values():
                parameters += _parameters_of(group)
                fields |= all_options_of(group)
        else:
            parameters.append(parameter.replace(annotation=hint, kind=parameter.KEYWORD_ONLY))
            fields[name] = (get_args(hint)[0] if hasattr(hint, "__metadata__") else hint), Opt("")
    # Positional arguments first, in the order of the groups; Typer reads them from the signature.
    parameters.sort(key=lambda parameter: not _is_argument(parameter))
    fields["quiet"] = bool, Opt("")
    common = _common(parameters, list(groups.values()), fields)
    parameters = [_context_parameter(), *parameters, *common]

    @functools.wraps(function)
    def call(context: typer.Context, **values: Any) -> Any:
        shared = {key: values.pop(key) for key in SHARED if key in values}
        stderr.quiet = shared["quiet"]
        built = _build(context, groups, values)
        if shared.get("print_config"):
            return print_options(built.values())
        tuples = {name: bundle(*map(built.pop, bundle._fields)) for name, bundle in bundles.items()}
        return function(**values, **built, **tuples)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in parameters}
    return call


def groups_of(function: Callable[..., Any]) -> list[type[Config]]:
    """Return the option groups of a command."""
    hints = get_type_hints(inspect.unwrap(function)).items()
    return [group for name, hint in hints for group in _groups(name, hint).values()]


def _groups(name: str, hint: Any) -> dict[str, type[Config]]:
    """Return the option groups of a command's parameter; none if it is a single option."""
    if is_kind(hint, tuple):
        return get_type_hints(hint)
    return {name: hint} if is_kind(hint, Config) else {}


def _common(
    parameters: list[inspect.Parameter], groups: list[type[Config]], fields: Fields
) -> list[inspect.Parameter]:
    """Return the options that every command has, or every command that trains."""
    reader = take_from_run(parameters, groups, fields)
    found = [config_file_parameter(fields, reader)]
    if TrainConfig in groups:
        found.append(preset_parameter(fields))
    if reader:
        found.append(print_config_parameter(parameters))
    return [*found, _quiet_parameter()]


def _build(
    context: typer.Context, groups: dict[str, type[Config]], values: dict[str, Any]
) -> dict[str, Any]:
    """Build the option groups from the values of a command, and remove these.

    Raises:
        OptionError: All faults of all groups.
    """
    built, faults = dict[str, Any](), []
    for name, group in groups.items():
        own = {key: values.pop(key) for key in all_options_of(group) if key in values}
        try:
            make_way(context, group, own)
            check_folders(context, group, values | own)
            built[name] = group.from_flat(**own)
        except OptionError as error:
            faults.append(str(error))
    if faults:
        message = "; ".join(faults)
        raise OptionError(message + origin(context, message))
    return built


def _is_argument(parameter: inspect.Parameter) -> bool:
    metadata = getattr(parameter.annotation, "__metadata__", ())
    return any(isinstance(item, typer.models.ArgumentInfo) for item in metadata)


def _parameters_of(group: type[Config]) -> list[inspect.Parameter]:
    """Return the command-line parameters of one option group.

    Options of kinds default to None and get their own panels, unless every kind has them. A family
    with a single kind gets no flag.
    """
    panel = (group.__doc__ or "").strip().splitlines()[0].rstrip(".")
    found: dict[str, inspect.Parameter] = {}
    for name, (plain, option) in options_of(group).items():
        default = default_of(group, name)
        if not is_kind(plain, Variant):
            found[name] = _parameter(name, plain, option, default, panel)
            continue
        kinds = plain.variants()
        if len(kinds) > 1:
            choice: Any = Literal[tuple(kinds)] | None
            found[name] = _parameter(name, choice, option, default.kind or None, panel)
        for key, owners in plain.owners().items():
            inner, own = options_of(kinds[owners[0]])[key]
            if (usual := default_of(kinds[owners[0]], key)) not in (None, ""):
                own = dataclasses.replace(own, help=f"{own.help} (default {usual})")
            own_panel = f"{name.capitalize()}: {', '.join(owners)}"
            own_panel = panel if key in plain.common() else own_panel
            found.setdefault(key, _parameter(key, inner | None, own, None, own_panel))
    return list(found.values())


def _parameter(name: str, plain: Any, option: Opt, default: Any, panel: str) -> inspect.Parameter:
    """Make one Typer parameter; bounds are checked by ``Config``, whatever the source."""
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
    empty = default is dataclasses.MISSING
    return keyword(name, Annotated[plain, info], inspect.Parameter.empty if empty else default)


def _reader_of(option: Opt) -> Callable[[str], int]:
    """Return a parser for integers and the option's words."""

    def number_or_word(text: str) -> int:
        if text in option.words:
            return option.words[text]
        with contextlib.suppress(ValueError):
            if (number := int(text)) not in option.words.values():
                return number
        raise typer.BadParameter(f"{text!r} is neither an integer nor {', '.join(option.words)}")

    return number_or_word


def refuse(why: str, *groups: Config) -> None:
    """Refuse options that have no effect.

    Args:
        why: End of the message: "has no effect ...".
        groups: Option groups; any value that differs from its default counts as given.

    Raises:
        OptionError: An option was given.
    """
    for group in groups:
        for fault in group.given(dict.fromkeys(options_of(type(group)), why)):
            raise OptionError(fault)


def _quiet_parameter() -> inspect.Parameter:
    text = "Show only warnings and errors, without progress and notes."
    info = typer.Option("--quiet", "-q", help=text)
    return keyword("quiet", Annotated[bool, info], False)


def _context_parameter() -> inspect.Parameter:
    return keyword("context", typer.Context, inspect.Parameter.empty)
