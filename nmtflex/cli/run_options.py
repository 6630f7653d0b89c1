"""The options that a run was made with, as the defaults of the command that goes on with it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import typer

from nmtflex.cli.config_file import (
    Fields,
    Origin,
    RunReader,
    read_options,
    remember,
    source_of,
)
from nmtflex.config import (
    Config,
    DeviceConfig,
    LoopConfig,
    ModelConfig,
    TrainConfig,
    is_kind,
    options_of,
    upgraded,
)
from nmtflex.errors import OptionError, RunError
from nmtflex.files import read_json
from nmtflex.training.made_by import check_made_by, maker_of

SECTIONS = {LoopConfig: "train", ModelConfig: "model", DeviceConfig: "device"}


def take_from_run(
    parameters: list[inspect.Parameter],
    groups: list[type[Config]],
    fields: Fields,
) -> RunReader | None:
    """Let ``--run`` of an existing run give every option of a training that is not given.

    Args:
        parameters: Of the command; that of ``--run`` is changed in place.
        groups: Its groups of options.
        fields: All options.

    Returns:
        What reads the ``config.json`` of a run; None where the command does not train one.
    """
    sections = {
        section: group
        for group in groups
        for base, section in SECTIONS.items()
        if is_kind(group, base)
    }
    if "train" not in sections:
        return None
    command = "train" if is_kind(sections["train"], TrainConfig) else "finetune"
    reader = partial(_read, command, sections)

    def read(context: typer.Context, path: Path) -> Path:
        config = path / "config.json"
        if not context.resilient_parsing and config.is_file():
            check_made_by(path, read_json(config, RunError), command)
            remember(context, Origin.RUN, read_options(config, reader(config), fields))
        return path

    own = next(parameter for parameter in parameters if parameter.name == "run")
    info = own.annotation.__metadata__[0]
    info.is_eager, info.callback = True, read
    return reader


def _read(command: str, sections: dict[str, type[Config]], path: Path) -> dict[str, Any]:
    """Read the options that a ``config.json`` has of a command, without the run's own folder.

    Raises:
        OptionError: It is not a run's, or one that another command made.
    """
    config = read_json(path, OptionError)
    if (made := maker_of(config)) not in (command, "average"):
        raise OptionError(f"{path} is of a run that nmtflex {made} made, not {command}")
    try:
        config = upgraded(config)
    except (KeyError, TypeError) as error:
        raise OptionError(f"{path} is not the config.json of a run, or damaged: {error}") from error
    found: dict[str, Any] = {}
    for section, group in sections.items():
        values = config.get(section)
        if not isinstance(values, dict):
            raise OptionError(f"{path}: no {section!r} section, so not the config.json of a run")
        known = options_of(group)
        found |= {
            name: value
            for name, value in values.items()
            if name in known and value is not None and name != "run"
        }
    return found


def check_folders(context: typer.Context, group: type[Config], values: Mapping[str, Any]) -> None:
    """Check that the folders which a run was made of, and which were not given, are still there.

    Raises:
        OptionError: One is not.
    """
    for name, (_, option) in options_of(group).items():
        taken = option.argument and source_of(context, name) is Origin.RUN
        if taken and not Path(values[name]).is_dir():
            raise OptionError(
                f"{values['run']} was made from {values[name]}, which is not there; give "
                f"{name.upper()}"
            )
