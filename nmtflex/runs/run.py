"""A run folder: what a training makes, self-contained and movable, and how it is opened again."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

from nmtflex.config import RUN_FORMAT, DeviceConfig, ModelConfig, upgraded
from nmtflex.errors import OptionError, RunError
from nmtflex.files import check_plain, read_json
from nmtflex.model.build import build_model, outlined
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.runs.device import open_device, storage_dtype
from nmtflex.runs.weights import check_weights, load_weights, model_tensors, open_tensors
from nmtflex.text.pipeline import TextPipeline
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
        self.tensorboard = path / "tensorboard"
        self.checkpoints = path / "checkpoints"
        self.best = self.checkpoints / "best.safetensors"

    def updates(self) -> list[Path]:
        """Return the checkpoint folders, the oldest first."""
        found = self.checkpoints.glob("update-*")
        named = [path for path in found if re.fullmatch(r"update-\d{8,18}", path.name)]
        return sorted(named, key=update_of)


def update_of(checkpoint: Path) -> int:
    """Return the optimiser steps behind one of ``RunFolder.updates``."""
    return int(checkpoint.name.removeprefix("update-"))


class Run(NamedTuple):
    """A run, opened to translate."""

    folder: RunFolder
    config: dict[str, Any]
    model_config: ModelConfig
    pipeline: TextPipeline
    model: Seq2Seq
    update: int  # optimiser steps behind the weights


def read_run_config(folder: RunFolder) -> dict[str, Any]:
    """Read and check ``config.json``.

    Raises:
        RunError: No run, an unreadable one, or one of a newer format.
    """
    if folder.path.is_file():
        raise RunError(f"{folder.path} is a file; give the folder that nmtflex train --run made")
    if not folder.path.is_dir():
        raise RunError(f"{folder.path}: no such folder, so no run")
    if not folder.config.exists():
        kind = "a prepared folder" if (folder.path / "manifest.json").exists() else "no run"
        raise RunError(
            f"{folder.path} is {kind}: it has no config.json; give a folder that "
            f"nmtflex train --run made, or to train a new one"
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
        for name in ("train", "device", "average"):
            if not isinstance(config.get(name, {}), dict):
                raise TypeError(f"{name!r} is {config[name]!r}, not an object")
    except (KeyError, TypeError, OptionError) as error:
        raise RunError(f"{folder.config}: damaged: {error}") from error
    return config


def _check_data(data: dict[str, Any]) -> None:
    """Check what a run's config says of its data; a TypeError or KeyError where it is damaged."""
    for name, least in (("source_size", len(SPECIALS)), ("target_size", len(SPECIALS))):
        if type(data[name]) is not int or data[name] < least:
            raise TypeError(f"{name!r} is {data[name]!r}, not a number of at least {least}")
    longest, mean = data["longest_source"], data.get("mean_valid_source")
    if type(longest) is not int or not 1 <= longest <= LONGEST:
        raise TypeError(f"'longest_source' is {longest!r}, not a number from 1 to {LONGEST:,}")
    if mean is not None and not (type(mean) is float and 1 <= mean <= LONGEST):
        raise TypeError(f"'mean_valid_source' is {mean!r}, not a number from 1 to {LONGEST:,}")


def load_run(path: Path, device: DeviceConfig | None = None) -> Run:
    """Open a run with its best weights, on a device, ready to translate.

    Raises:
        RunError: No run, a damaged one, or one without a checkpoint.
        DataError: Its text pipeline is damaged.
        OptionError: The device cannot be had.
    """
    folder = RunFolder(path)
    read_run_config(folder)
    if not folder.best.exists():
        raise RunError(_without_best(folder))
    run, device = outline_run(path), device or DeviceConfig()
    place = open_device(device)
    try:
        check_weights(folder.best, model_tensors(run.model))
        model = _build(run.model_config, run.config["data"], device.dtype == "bfloat16")
        model.to(place, storage_dtype(device)).eval()
        load_weights(folder.best, model)
    except RunError as error:
        raise RunError(
            f"{error}; put the weights.safetensors of a checkpoint beside it in its place (those "
            f"of the last update stand there, not of the best)"
        ) from error
    return run._replace(model=model, update=best_update(folder))


def best_update(folder: RunFolder) -> int:
    """Return the optimiser steps behind a run's best weights, by the header of their file.

    Raises:
        RunError: The file is damaged.
    """
    with open_tensors(folder.best) as file:
        update = (file.metadata() or {}).get("update", "0")
    if not re.fullmatch(r"\d{1,18}", update):
        raise RunError(f"{folder.best}: update is {update!r}, not a number; the file is damaged")
    return int(update)


def _without_best(folder: RunFolder) -> str:
    """Say what to do about a run that has no best weights."""
    if not (kept := folder.updates()):
        return f"{folder.path} has no checkpoint yet; let nmtflex train reach a validation"
    last = kept[-1] / "weights.safetensors"
    return (
        f"{folder.best} is gone; copy it from where the run was made, or take the weights of the "
        f"last checkpoint, update {update_of(kept[-1]):,}, which need not be the best: "
        f"{shlex.join(['cp', str(last), str(folder.best)])}"
    )


def outline_run(path: Path) -> Run:
    """Read a run without its weights: those of its model are on the meta device.

    Raises:
        RunError: No run, or a damaged one.
        DataError: Its text pipeline is damaged.
    """
    folder = RunFolder(path)
    config = read_run_config(folder)
    model_config, data = ModelConfig.from_dict(config["model"]), config["data"]
    pipeline = TextPipeline.load(folder.pipeline)
    sizes = len(pipeline.source.vocabulary), len(pipeline.target.vocabulary)
    if sizes != (data["source_size"], data["target_size"]):
        raise RunError(
            f"{folder.pipeline} has vocabularies of {sizes[0]:,} and {sizes[1]:,} entries, and "
            f"{folder.config} says {data['source_size']:,} and {data['target_size']:,}; copy the "
            f"folder anew"
        )
    if model_config.tie_embeddings == "all" and sizes[0] != sizes[1]:
        raise RunError(f"{folder.config}: damaged: one embedding for vocabularies of two sizes")
    with outlined():  # no memory, however large the model is
        model = _build(model_config, data)
    return Run(folder, config, model_config, pipeline, model, 0)


def _build(config: ModelConfig, data: dict[str, Any], autocast: bool = False) -> Seq2Seq:
    """Build the model of a run."""
    sizes = data["source_size"], data["target_size"], data["longest_source"]
    return build_model(config, *sizes, autocast)
