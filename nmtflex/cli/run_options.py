"""Options of an existing run, as defaults of the command that resumes it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import typer

from nmtflex.cli.config_file import Fields, Origin, RunReader, read_options, remember, source_of
from nmtflex.config import (
    Config,
    DecoderConfig,
    DeviceConfig,
    EncoderConfig,
    LoopConfig,
    ModelConfig,
    TrainConfig,
    Variant,
    is_kind,
    options_of,
    upgraded,
)
from nmtflex.errors import OptionError, RunError
from nmtflex.files import read_json
from nmtflex.training.made_by import WITHOUT_TRAINING, check_made_by, maker_of

SECTIONS = {LoopConfig: "train", ModelConfig: "model", DeviceConfig: "device"}


def take_from_run(
    parameters: list[inspect.Parameter], groups: list[type[Config]], fields: Fields
) -> RunReader | None:
    """Make ``--run`` of an existing run supply every training option that is not given.

    Args:
        parameters: Parameters of the command; that of ``--run`` is changed in place.
        groups: Option groups of the command.
        fields: All its options.

    Returns:
        A reader for the ``config.json`` of a run; None if the command does not train.
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
    """Read the options of a command from a ``config.json``, except the run's own folder.

    Raises:
        OptionError: It does not belong to a run, or another command made the run.
    """
    config = read_json(path, OptionError)
    if (made := maker_of(config)) not in (command, *WITHOUT_TRAINING):
        raise OptionError(f"{path} belongs to a run made by nmtflex {made}, not {command}")
    try:
        config = upgraded(config)
    except KeyError as error:
        raise OptionError(f"{path} is not a run's config.json: it has no {error}") from error
    except TypeError as error:
        raise OptionError(f"{path} is damaged: {error}") from error
    found: dict[str, Any] = {}
    for section, group in sections.items():
        values = config.get(section)
        if not isinstance(values, dict):
            raise OptionError(f"{path} is not a run's config.json: it has no {section!r} section")
        known = options_of(group)
        found |= {
            name: value
            for name, value in values.items()
            if name in known and value is not None and name != "run"
        }
    return _without_usual_sizes(found)


def _without_usual_sizes(options: dict[str, Any]) -> dict[str, Any]:
    """Leave out the units of layers that follow from those of an embedding.

    So a preset or a flag of another embedding size is compared with the run as a whole.
    """
    families: dict[str, type[Variant]] = {"encoder": EncoderConfig, "decoder": DecoderConfig}
    found = dict(options)
    for family, variants in families.items():
        values = found.get(family)
        if isinstance(values, dict) and (kind := variants.variants().get(values.get("kind", ""))):
            usual = kind.usual({}, found).items()
            found[family] = {
                key: value for key, value in values.items() if (key, value) not in usual
            }
    return found


def check_folders(context: typer.Context, group: type[Config], values: Mapping[str, Any]) -> None:
    """Check that folders taken from a run's options still exist.

    Raises:
        OptionError: One does not.
    """
    for name, (_, option) in options_of(group).items():
        taken = option.argument and source_of(context, name) is Origin.RUN
        if taken and not Path(values[name]).is_dir():
            raise OptionError(
                f"{values['run']} was made from {values[name]}, which does not exist; give "
                f"{name.upper()}"
            )
