"""Opening a run folder: its model, with weights or without, and its text pipeline."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any, NamedTuple

from nmtflex.config import DeviceConfig, ModelConfig
from nmtflex.errors import RunError
from nmtflex.model.build import Undrawn, build_model, outlined
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.runs.device import open_device, storage_dtype
from nmtflex.runs.folder import RunFolder, read_run_config, update_of
from nmtflex.runs.weights import best_update, check_weights, map_weights, model_tensors
from nmtflex.text.pipeline import TextPipeline


class Run(NamedTuple):
    """A run, opened to translate."""

    folder: RunFolder
    config: dict[str, Any]
    model_config: ModelConfig
    pipeline: TextPipeline
    model: Seq2Seq
    update: int  # optimiser steps behind the weights


def load_run(path: Path, device: DeviceConfig | None = None) -> Run:
    """Open a run with its best weights, on a device, ready to translate.

    Raises:
        RunError: The folder is not a run, is damaged, or has no checkpoint.
        DataError: Its text pipeline is damaged.
        OptionError: The device does not exist.
    """
    folder = RunFolder(path)
    read_run_config(folder)
    if not folder.best.exists():
        raise RunError(without_best(folder))
    run, device = outline_run(path), device or DeviceConfig()
    place = open_device(device)
    try:
        check_weights(folder.best, model_tensors(run.model))
        with Undrawn():
            model = _build(run.model_config, run.config["data"], device.dtype == "bfloat16")
        model.to(place, storage_dtype(device)).eval()
        map_weights(folder.best, model)
    except RunError as error:
        raise RunError(
            f"{error}; replace it by the weights.safetensors of a checkpoint beside it (weights "
            f"of the last update, not of the best)"
        ) from error
    return run._replace(model=model, update=best_update(folder))


def without_best(folder: RunFolder) -> str:
    """Return the message for a run that has no best weights."""
    if not (kept := folder.updates()):
        return f"{folder.path} has no checkpoint yet; let nmtflex train reach a validation"
    last = kept[-1] / "weights.safetensors"
    return (
        f"{folder.best} is gone; copy it from where the run was made, or take the weights of the "
        f"last checkpoint, update {update_of(kept[-1]):,}, which need not be the best: "
        f"{shlex.join(['cp', str(last), str(folder.best)])}"
    )


def outline_run(path: Path) -> Run:
    """Read a run without its weights; its model is on the meta device.

    Raises:
        RunError: The folder is not a run, or is damaged.
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
            f"folder again"
        )
    if model_config.tie_embeddings == "all" and sizes[0] != sizes[1]:
        raise RunError(f"{folder.config}: damaged: one embedding for vocabularies of two sizes")
    with outlined():  # takes no memory
        model = _build(model_config, data)
    return Run(folder, config, model_config, pipeline, model, 0)


def _build(config: ModelConfig, data: dict[str, Any], autocast: bool = False) -> Seq2Seq:
    """Build the model of a run."""
    sizes = data["source_size"], data["target_size"], data["longest_source"]
    return build_model(config, *sizes, autocast)
