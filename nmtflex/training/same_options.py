"""Comparing the options of an unfinished run with those given to resume it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from nmtflex.config import Config, Variant, is_kind, options_of
from nmtflex.config.words import option_words, plain_default
from nmtflex.errors import OptionError, RunError
from nmtflex.runs.folder import RunFolder
from nmtflex.training.describe import Options
from nmtflex.training.made_by import check_made_by, maker_of

NOT_COMPARED = (
    "data",
    "run",
    "base_run",
    "init_from",
)  # folders may move; their content is compared instead


def check_same(
    folder: RunFolder, before: dict[str, Any], config: dict[str, Any], options: Options
) -> None:
    """Refuse to resume with other options than the run was made with; name each.

    Args:
        folder: The run.
        before: Its ``config.json``.
        config: The same as it would be now.
        options: Those of this training.

    Raises:
        OptionError: The run was made by another command, from another base, or with other options.
        RunError: It has no training to resume, or its ``config.json`` is damaged.
    """
    check_made_by(folder.path, before, maker_of(config))
    if before.get("base") != config.get("base"):
        base = options.train.base
        start = "random weights" if base is None else f"the present weights of {base}"
        raise OptionError(
            f"{folder.path} did not start from {start}; give its base run, or another --run"
        )
    faults: list[str] = []
    for section, group in options._asdict().items():
        old = before.get(section)
        if not isinstance(old, dict):
            raise RunError(f"{folder.config}: damaged: no {section!r} section")
        faults += dict.fromkeys(_changes(type(group), old, config[section]))
    # Newer versions note more of the data, which follows from the fingerprint.
    had = before.get("data", {})
    if any(had.get(name) != config["data"][name] for name in had or config["data"]):
        faults.append("the prepared data is not the data it was trained on")
    if faults:
        raise OptionError(
            f"{folder.path} is a run with other options: {'; '.join(faults)}; leave out what "
            f"should stay unchanged, or give another --run"
        )


def _changes(group: type[Config], old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Describe each changed option, before and now, as on a command line."""
    for name, (plain, option) in options_of(group).items():
        had = old.get(name, plain_default(group, name))  # an option newer than the run
        now = new[name]
        if is_kind(plain, Variant) and isinstance(had, dict) and had.get("kind") == now["kind"]:
            yield from _changes(plain.variants()[now["kind"]], had, now)
            continue
        was, now = (option_words(name, plain, option, value) for value in (had, now))
        if option.may_change or name in NOT_COMPARED or was == now:
            continue
        if not (was and now):
            flag = (was or now)[0]
            ends = [shlex.join(words[1:]) if words else "not given" for words in (was, now)]
            yield f"{flag} was {ends[0]}, now {ends[1]}"
        elif was[0] == now[0]:
            yield f"{was[0]} was {shlex.join(was[1:])}, not {shlex.join(now[1:])}"
        else:
            yield f"it had {was[0]}, not {now[0]}"
