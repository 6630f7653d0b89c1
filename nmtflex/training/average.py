"""The mean of a run's last checkpoints, as a run of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from nmtflex.config import AverageConfig, LoopConfig
from nmtflex.errors import RunError
from nmtflex.runs.derived import check_derived, derived_run
from nmtflex.runs.folder import RunFolder, update_of
from nmtflex.runs.opening import outline_run
from nmtflex.runs.weights import model_tensors, read_weights
from nmtflex.text.visible import counted
from nmtflex.training.checkpoint import WEIGHTS, last_rate
from nmtflex.training.made_by import WITHOUT_TRAINING, maker_of


class Average(NamedTuple):
    """The new run."""

    folder: RunFolder
    updates: list[int]  # optimiser steps of each averaged checkpoint


def average_checkpoints(config: AverageConfig) -> Average:
    """Make a run whose weights are the mean of another run's last checkpoints.

    The new run can translate and be finetuned, but has no training to resume. Its ``config.json``
    and the file of its weights name the averaged run and updates.

    Raises:
        OptionError: The new folder exists.
        RunError: The folder is not a run, is damaged, or has too few checkpoints.
        DataError: Its text pipeline is damaged.
    """
    out, base = RunFolder(config.out), RunFolder(config.base_run)
    described = check_derived(out.path, base)
    checkpoints = _last(base, config.last, described)
    files = [checkpoint / WEIGHTS for checkpoint in checkpoints]
    weights = _mean(files, model_tensors(outline_run(config.base_run).model))
    updates = [update_of(checkpoint) for checkpoint in checkpoints]
    described["average"] = {
        "base_run": str(base.path.resolve()),
        "updates": updates,
        "rate": last_rate(base),
    }
    about = {"update": str(updates[-1]), "average": " ".join(map(str, updates))}
    with derived_run(out.path, base, described, weights, about):
        pass
    return Average(out, updates)


def _last(folder: RunFolder, count: int, config: dict[str, Any]) -> list[Path]:
    """Return the last checkpoints, the oldest first.

    Raises:
        RunError: There are too few.
    """
    found = folder.updates()
    if len(found) >= count:
        return found[-count:]
    if (made := maker_of(config)) in WITHOUT_TRAINING:
        raise RunError(
            f"{folder.path} was made by nmtflex {made} and has no checkpoints of a training; "
            f"give the run that it was made from"
        )
    kept = f" (of updates {', '.join(str(update_of(path)) for path in found)})" if found else ""
    keep = config.get("train", {}).get("keep")
    if type(keep) is not int:  # a run of an early version, or damaged
        keep = LoopConfig.__dataclass_fields__["keep"].default
    if keep < count:
        remedy = f"its training has --keep {keep}; train on with --keep {count} and"
    else:
        remedy = f"its training has --keep {keep} and made no more yet; train on with"
    raise RunError(
        f"{folder.path} has {counted(len(found), 'checkpoint')}{kept}, fewer than --last {count}: "
        f"{remedy} more --epochs or --updates" + (f", or give --last {len(found)}" if found else "")
    )


def _mean(files: Sequence[Path], shapes: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the mean of each weight, summed in float64, in the format of the last file.

    Raises:
        RunError: A file is damaged, or of another model.
    """
    sums: dict[str, Tensor] = {}
    last: dict[str, Tensor] = {}
    for file in files:
        last, _ = read_weights(file, shapes)
        for name, tensor in last.items():
            sums[name] = sums.get(name, 0) + tensor.double()
    return {name: (sums[name] / len(files)).to(last[name].dtype) for name in sums}
