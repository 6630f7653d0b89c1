"""The settings of several runs as one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def settings(configs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one row an option, by group: its name, and its value in the config of each run."""
    flat = [dict(_flatten(config)) for config in configs]
    rows = dict.fromkeys(key for one in flat for key in one)
    groups = list(dict.fromkeys(group for group, _ in rows))
    return [
        {"group": group, "name": name, "values": [one.get((group, name), "") for one in flat]}
        for group, name in sorted(rows, key=lambda key: groups.index(key[0]))
    ]


def _flatten(config: Mapping[str, Any]) -> list[tuple[tuple[str, str], str]]:
    """Return the options of a run's config with their groups; top-level values are "software"."""
    found = []
    for group, value in config.items():
        if isinstance(value, Mapping):
            found += [((group, name), text) for name, text in _leaves(value)]
        else:
            found.append((("software", group), _text(value)))
    return found


def _leaves(table: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the options of a table; those of nested tables have dots in their names."""
    found = []
    for name, value in table.items():
        if isinstance(value, Mapping):
            found += [(f"{name}.{inner}", text) for inner, text in _leaves(value)]
        else:
            found.append((name, _text(value)))
    return found


def _text(value: Any) -> str:
    """Return a value in plain words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return "" if value is None else str(value)
