"""Options as TOML, as ``--config`` reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from nmtflex.config.base import Config, Opt, Variant, options_of
from nmtflex.errors import OptionError


def toml_of(groups: Iterable[Config], left_out: object = None) -> str:
    """Return option groups as one TOML document, with the start of each help text as a comment.

    Args:
        groups: With the values. None is left out, for TOML lacks it, and it is always the default.
        left_out: Another value whose options are left out.

    Raises:
        OptionError: A path is not valid UTF-8.
    """
    options: list[str] = []
    tables: list[str] = []
    for group in groups:
        options += _lines(group, left_out)
        for name in options_of(type(group)):
            value = getattr(group, name)
            if isinstance(value, Variant):
                tables += ["", f"[{_key(name)}]", f'kind = "{value.kind}"', *_lines(value)]
    return "\n".join(options + tables)


def _lines(group: Config, left_out: object = None) -> Iterator[str]:
    """Yield the options of one group, without its families."""
    plain = Config.to_dict(group)
    for name, (_, option) in options_of(type(group)).items():
        value = getattr(group, name)
        if value not in (None, left_out) and not isinstance(value, Variant):
            about = re.split(r"(?<=\w\w)[.;:] | \(|\.$", option.help)[0]
            yield f"{_key(name)} = {_value(name, option, plain[name])}  # {about}"


def _key(name: str) -> str:
    """Return an option's name as its flag has it."""
    return name.replace("_", "-")


def _value(name: str, option: Opt, value: Any) -> str:
    """Return a value in TOML, whose strings and lists are JSON's but for one control character."""
    words = {number: word for word, number in option.words.items()}
    if isinstance(value, float):
        return repr(value)  # inf, too
    text = json.dumps(words.get(value, value) if words else value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise OptionError(f"option {name!r} is not valid UTF-8: {value!r}") from error
    return text.replace("\x7f", "\\u007f")
