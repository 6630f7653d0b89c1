"""Checkpoints, one folder each, written atomically; the last few and the best weights are kept."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from nmtflex.errors import RunError
from nmtflex.files import atomic_folder, read_json, remove_folder, write_json
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.runs.folder import RunFolder, update_of
from nmtflex.runs.weights import load_tensors, load_weights, model_tensors, save_tensors
from nmtflex.training.optimizers.base import Optimizer
from nmtflex.training.progress import Progress

WEIGHTS, TRAINER, PROGRESS = "weights.safetensors", "trainer.safetensors", "progress.json"
AVERAGE = "ema"  # of a weight, beside the names of the optimiser's state
LEAST_FACTOR = 0.01  # a rate that a schedule has brought near 0 teaches a finetuning nothing
CHECKSUM = "sha256"  # in the progress, of everything else in it


def save_checkpoint(
    folder: RunFolder,
    model: Seq2Seq,
    optimizer: Optimizer,
    progress: Progress,
    keep: int,
    random: Mapping[str, Tensor] = MappingProxyType({}),
) -> None:
    """Write a checkpoint, then delete all but the last ``keep``.

    ``random`` has the random generators of other processes; see ``training.joining``. If this
    update was saved before its validation, which changes no tensor, only the progress is written.

    Raises:
        OSError: The disk is full, say; earlier checkpoints stay as they were.
    """
    path = folder.checkpoints / f"update-{progress.update:08d}"
    about = {"update": str(progress.update)}
    if path.exists():
        _write_progress(path, progress)
    else:
        with atomic_folder(path) as temporary:
            save_tensors(temporary / WEIGHTS, model_tensors(model), about)
            tensors = _trainer_tensors(model, optimizer) | dict(random)
            save_tensors(temporary / TRAINER, tensors, about)
            _write_progress(temporary, progress)
    for outdated in folder.updates()[:-keep]:
        remove_folder(outdated)


def check_room(folder: RunFolder, model: Seq2Seq, copies: int) -> None:
    """Check, before a training begins, that a checkpoint and the best weights fit on its disk.

    Args:
        folder: The run.
        model: The one to train.
        copies: How many numbers optimiser and average keep for each weight that is trained.

    Raises:
        RunError: They do not; names the bytes free and needed.
    """
    weights = list(model.parameters())
    trained = sum(weight.nbytes for weight in weights if weight.requires_grad)
    needed = 2 * sum(weight.nbytes for weight in weights) + copies * trained
    free = shutil.disk_usage(folder.path).free
    if free < needed:
        raise RunError(
            f"{folder.path}: {free:,} bytes of its disk are free, and a checkpoint with the best "
            f"weights takes {needed:,}; make room and give the same command again"
        )


def _write_progress(path: Path, progress: Progress) -> None:
    values = progress.to_dict()
    write_json(path / PROGRESS, values | {CHECKSUM: _checksum(values)})


def read_progress(path: Path) -> dict[str, Any]:
    """Read the progress of a checkpoint, a folder of ``RunFolder.updates``, as plain numbers.

    Raises:
        RunError: It is damaged. (Older ones have no checksum, and are accepted.)
    """
    values = read_json(path / PROGRESS, RunError)
    written = values.pop(CHECKSUM, None)
    if written is not None and written != _checksum(values):
        raise RunError(f"{path / PROGRESS} is damaged: it does not match its checksum")
    return values


def _checksum(values: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def last_rate(folder: RunFolder) -> float:
    """Return the learning rate of a run's last update, but no tiny one.

    A schedule may have brought it near 0; at least a hundredth of the rate without the schedule is
    returned.

    Raises:
        RunError: The run has no checkpoint, or its last one is damaged.
    """
    checkpoints = folder.updates()
    if not checkpoints:
        raise RunError(f"{folder.path} has no checkpoint to take the learning rate from; give --lr")
    progress = read_progress(checkpoints[-1])
    rate, factor = progress.get("rate"), progress.get("factor", 1.0)
    for number in (rate, factor):
        if not isinstance(number, float) or not 0 < number < math.inf:
            raise RunError(f"{checkpoints[-1] / PROGRESS}: no learning rate; give --lr")
    return rate * max(factor, LEAST_FACTOR)


def clear_leftovers(folder: RunFolder) -> None:
    """Delete the temporary files of a training that was killed while writing.

    The caller holds the run's lock, so no other process writes.
    """
    files = (folder.config, folder.metrics, folder.commands)
    names = [f".{file.name}.*" for file in files]
    left = [path for name in names for path in folder.path.glob(name)]
    for path in (*left, *folder.checkpoints.glob(".*"), *folder.checkpoints.glob("*/.*")):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)  # it went with its folder


def save_best(folder: RunFolder, model: Seq2Seq, about: dict[str, str]) -> None:
    """Write the weights that translation uses."""
    save_tensors(folder.best, model_tensors(model), about)


def load_checkpoint(path: Path, model: Seq2Seq, optimizer: Optimizer) -> Progress:
    """Restore weights, optimiser and random numbers; return the progress.

    Raises:
        RunError: A part is missing, truncated or of another model.
    """
    try:
        load_weights(path / WEIGHTS, model)
        tensors, _ = load_tensors(path / TRAINER)
        progress = Progress.from_dict(read_progress(path))
        if progress.update != update_of(path):
            raise RunError(f"{path / PROGRESS} is of update {progress.update}")
        _restore_trainer(tensors, model, optimizer)
    except (RunError, KeyError, TypeError, RuntimeError) as error:
        raise RunError(f"checkpoint {path} cannot be resumed: {error}") from error
    return progress


def _trainer_tensors(model: Seq2Seq, optimizer: Optimizer) -> dict[str, Tensor]:
    """Name tensors of optimiser and average after their weights; add the random generators."""
    tensors = {"rng.cpu": torch.get_rng_state()}
    if model.device.type == "cuda":
        tensors["rng.cuda"] = torch.cuda.get_rng_state(model.device)
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{name}:{key}"] = value
        if parameter in optimizer.average.values:
            tensors[f"{name}:{AVERAGE}"] = optimizer.average.values[parameter]
    return tensors


def _restore_trainer(tensors: dict[str, Tensor], model: Seq2Seq, optimizer: Optimizer) -> None:
    averages, states = dict[str, Tensor](), dict[str, dict[str, Tensor]]()
    trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    for label, tensor in tensors.items():
        name, _, key = label.partition(":")
        if not key:
            continue
        shape = () if key == "step" else trained[name].shape if name in trained else None
        if tensor.shape != shape or not tensor.is_floating_point():
            raise RunError(f"{label} is not the optimiser's of this model")
        if key == AVERAGE:
            averages[name] = tensor
        else:
            states.setdefault(name, {})[key] = tensor
    restored: dict[Tensor, dict[str, Tensor]] = {}
    for name, state in states.items():
        fresh = optimizer.first_state(trained[name])
        if state.keys() != fresh.keys():
            raise RunError(f"{name} has {', '.join(state)} of the optimiser")
        restored[trained[name]] = {key: state[key].to(like) for key, like in fresh.items()}
    kept = optimizer.average.values
    if averages.keys() != {name for name, weight in trained.items() if weight in kept}:
        raise RunError(f"it has the moving average of {len(averages)} of {len(kept)} weights")
    for name, average in averages.items():
        kept[trained[name]].copy_(average)
    optimizer.state = restored
    torch.set_rng_state(tensors["rng.cpu"])
    if "rng.cuda" in tensors and model.device.type == "cuda":
        torch.cuda.set_rng_state(tensors["rng.cuda"], model.device)
