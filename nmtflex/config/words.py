"""Options as command-line words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nmtflex.config.base import Config, Opt, Variant, default_of, flag_of, is_kind, options_of


def given_words(group: type[Config], values: Mapping[str, Any]) -> list[str]:
    """Return the command-line words for options that differ from their defaults.

    Args:
        group: The option group.
        values: Plain JSON types by name, as from ``Config.to_dict``; positional arguments and
            unknown names are ignored.
    """
    return [word for words in _by_option(group, values).values() for word in words]


def _by_option(group: type[Config], values: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the words of each option; an option shared by two families appears once."""
    found: dict[str, list[str]] = {}
    for name, (plain, option) in options_of(group).items():
        default = plain_default(group, name)
        value = values.get(name, default)
        if option.argument or value == default:
            continue
        if is_kind(plain, Variant) and isinstance(value, dict):
            kinds, kind = plain.variants(), str(value.get("kind"))
            if len(kinds) > 1:
                found[name] = [flag_of(name, option), kind]
            found |= _by_option(kinds[kind], value) if kind in kinds else {}
        else:
            found[name] = option_words(name, plain, option, value)
    return found


def plain_default(group: type[Config], name: str) -> Any:
    """Return the default of an option in plain JSON types."""
    default = default_of(group, name)
    return default.to_dict() if isinstance(default, Variant) else default


def option_words(name: str, plain: Any, option: Opt, value: Any) -> list[str]:
    """Return the command-line words that set an option; none for the value None."""
    flag = flag_of(name, option)
    if is_kind(plain, Variant) and isinstance(value, dict):
        kind = str(value.get("kind"))
        variant = plain.variants().get(kind)
        return [flag, kind, *(given_words(variant, value) if variant else ())]
    if isinstance(value, bool):
        on, _, off = flag.partition("/")
        return [on if value else off or f"--no-{on[2:]}"]
    if isinstance(value, list):
        return [word for item in value for word in (flag, str(item))]
    return [] if value is None else [flag, str(value)]
