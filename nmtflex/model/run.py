"""A run folder: what a training makes, self-contained and movable, and how it is opened again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from nmtflex.config import FORMAT, DeviceConfig, ModelConfig
from nmtflex.errors import OptionError, RunError
from nmtflex.files import read_json
from nmtflex.model.device import open_device, storage_dtype
from nmtflex.model.seq2seq import Seq2Seq, build_model
from nmtflex.model.weights import load_weights
from nmtflex.text.pipeline import TextPipeline


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
        self.tensorboard = path / "tensorboard"
        self.checkpoints = path / "checkpoints"
        self.best = self.checkpoints / "best.safetensors"

    def updates(self) -> list[Path]:
        """Return the checkpoint folders, the oldest first."""
        return sorted(self.checkpoints.glob("update-*"))


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
    if not folder.path.is_dir():
        raise RunError(f"{folder.path}: no such folder, so no run")
    if not folder.config.exists():
        kind = "a prepared folder" if (folder.path / "manifest.json").exists() else "no run"
        raise RunError(
            f"{folder.path} is {kind}: it has no config.json; give a folder that "
            f"nmtflex train --run made"
        )
    config = read_json(folder.config, RunError)
    number = config.get("format")
    if not isinstance(number, int):
        raise RunError(f"{folder.config}: no format number; the file is not a run's")
    if number > FORMAT:
        raise RunError(
            f"{folder.path} has format {number}, newer than {FORMAT}, the newest that this "
            f"nmtflex reads; update nmtflex"
        )
    return config


def load_run(path: Path, device: DeviceConfig | None = None) -> Run:
    """Open a run with its best weights, on a device, ready to translate.

    Raises:
        RunError: No run, a damaged one, or one without a checkpoint.
        OptionError: The device cannot be had.
    """
    device = device or DeviceConfig()
    folder = RunFolder(path)
    config = read_run_config(folder)
    try:
        model_config = ModelConfig.from_dict(config["model"])
        data = config["data"]
        sizes = data["source_size"], data["target_size"], data["longest_source"]
    except (KeyError, TypeError, OptionError) as error:
        raise RunError(f"{folder.config}: damaged: {error}") from error
    if not folder.best.exists():
        raise RunError(f"{path} has no checkpoint yet; let nmtflex train reach a validation")
    place = open_device(device)
    model = build_model(model_config, *sizes, autocast=device.dtype == "bfloat16")
    model.to(place, storage_dtype(device)).eval()
    try:
        about = load_weights(folder.best, model)
    except RunError as error:
        raise RunError(
            f"{error}; put the weights.safetensors of a checkpoint beside it in its place"
        ) from error
    pipeline = TextPipeline.load(folder.pipeline)
    return Run(folder, config, model_config, pipeline, model, int(about.get("update", 0)))
