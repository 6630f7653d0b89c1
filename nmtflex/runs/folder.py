"""A run folder: the names inside it, and its ``config.json``; it is self-contained and movable."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from nmtflex.config import RUN_FORMAT, ModelConfig, upgraded
from nmtflex.errors import OptionError, RunError
from nmtflex.files import check_plain, read_json
from nmtflex.text.vocabulary import SPECIALS

LONGEST = 10**9  # tokens of a source that a run could have been trained on


class RunFolder:
    """The names inside a run folder.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.json"
        self.pipeline = path / "pipeline"
        self.raw = path / "raw"
        self.metrics = path / "metrics.csv"
        self.commands = path / "commands.jsonl"
        self.confidence = path / "confidence.json"
        self.tensorboard = path / "tensorboard"
        self.checkpoints = path / "checkpoints"
        self.best = self.checkpoints / "best.safetensors"

    def close(self) -> None:
        """Let go of the folder: nothing to do, unless it was opened to be trained."""

    def updates(self) -> list[Path]:
        """Return the checkpoint folders, the oldest first."""
        found = self.checkpoints.glob("update-*")
        named = [path for path in found if re.fullmatch(r"update-\d{8,18}", path.name)]
        return sorted(named, key=update_of)


def update_of(checkpoint: Path) -> int:
    """Return the optimiser steps behind one of ``RunFolder.updates``."""
    return int(checkpoint.name.removeprefix("update-"))


def read_run_config(folder: RunFolder) -> dict[str, Any]:
    """Read and check ``config.json``.

    Raises:
        RunError: The folder is not a run, cannot be read, or has a newer format.
    """
    if folder.path.is_file():
        raise RunError(f"{folder.path} is a file; give the folder that nmtflex train --run made")
    if not folder.path.is_dir():
        raise RunError(f"{folder.path}: no such run folder")
    if not folder.config.exists():
        kind = "a prepared folder" if (folder.path / "manifest.json").exists() else "not a run"
        raise RunError(
            f"{folder.path} is {kind}: it has no config.json; give a folder that "
            f"nmtflex train --run made, or train a new one"
        )
    check_plain(folder.path, RunError)
    config = read_json(folder.config, RunError)
    number = config.get("format")
    if not isinstance(number, int):
        raise RunError(f"{folder.config}: no format number; the file is not a run's")
    if number > RUN_FORMAT:
        raise RunError(
            f"{folder.path} has format {number}, newer than {RUN_FORMAT}, the newest that this "
            f"nmtflex reads; update nmtflex"
        )
    try:
        config = upgraded(config)
        ModelConfig.from_dict(config["model"])
        _check_data(config["data"])
        for name in ("train", "device", "average", "export"):
            if not isinstance(config.get(name, {}), dict):
                raise TypeError(f"{name!r} is {config[name]!r}, not an object")
    except (KeyError, TypeError, OptionError) as error:
        raise RunError(f"{folder.config}: damaged: {error}") from error
    return config


def _check_data(data: dict[str, Any]) -> None:
    """Check the data section of a run's config; raise TypeError or KeyError if it is damaged."""
    for name, least in (("source_size", len(SPECIALS)), ("target_size", len(SPECIALS))):
        if type(data[name]) is not int or data[name] < least:
            raise TypeError(f"{name!r} is {data[name]!r}, not a number of at least {least}")
    longest, mean = data["longest_source"], data.get("mean_valid_source")
    if type(longest) is not int or not 1 <= longest <= LONGEST:
        raise TypeError(f"'longest_source' is {longest!r}, not a number from 1 to {LONGEST:,}")
    if mean is not None and not (type(mean) is float and 1 <= mean <= LONGEST):
        raise TypeError(f"'mean_valid_source' is {mean!r}, not a number from 1 to {LONGEST:,}")
