"""Options of several layers: common ones, and those of one entry above them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nmtflex.config.base import Config, all_options_of, options_of


def layered(
    groups: Iterable[type[Config]], below: Mapping[str, Any], above: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the flat options of two layers.

    The lower layer may have options for several kinds of a family: those that the chosen kinds lack
    are left out, and so is what an option of the upper layer replaces (``Opt.replaces``).

    Args:
        groups: What the options belong to.
        below: By name; for a family, the name of a kind.
        above: Options that override the lower ones.

    Raises:
        OptionError: There is no such kind.
    """
    values = {**below, **above}
    for group in groups:
        for name, (_, option) in options_of(group).items():
            if name in above:
                values = {
                    key: value
                    for key, value in values.items()
                    if key in above or key not in option.replaces
                }
        own = all_options_of(group).keys()
        kinds = group.kinds_of({key: value for key, value in values.items() if key in own})
        known = set(options_of(group)).union(*map(options_of, kinds.values()))
        values = {
            key: value
            for key, value in values.items()
            if key in above or key in known or key not in own
        }
    return values
