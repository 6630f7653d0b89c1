"""A run without its training: what translating needs, with weights in fewer bits if wanted."""

from __future__ import annotations

import shutil
from typing import NamedTuple

from nmtflex.config import ExportConfig
from nmtflex.errors import OptionError, RunError
from nmtflex.files import atomic_folder, check_contained, is_free, write_json
from nmtflex.runs.folder import RunFolder, best_update, read_run_config
from nmtflex.runs.opening import outline_run, without_best
from nmtflex.runs.rounding import rounded
from nmtflex.runs.weights import digest_of, model_tensors, read_weights, save_tensors


class Exported(NamedTuple):
    """The new run."""

    folder: RunFolder
    update: int  # optimiser steps behind its weights
    bytes: int  # of its weights
    before: int  # of the weights of the run that was exported
    uncalibrated: bool  # what the run was calibrated with does not fit the new weights


def export_run(config: ExportConfig) -> Exported:
    """Copy what translating, scoring and serving need of a run into a run of its own.

    The new run has no checkpoints, no log and no training to resume. Its ``config.json`` names the
    run that it was made from.

    Raises:
        OptionError: The new folder exists.
        RunError: The folder is not a run, is damaged, or has no weights yet.
        DataError: Its text pipeline is damaged.
    """
    out, base = RunFolder(config.out), RunFolder(config.base_run)
    if not is_free(out.path):
        raise OptionError(f"--run {out.path} exists already; remove it or choose another folder")
    described = read_run_config(base)
    check_contained(base.path, RunError)
    if not base.best.exists():
        raise RunError(without_best(base))
    model = outline_run(config.base_run).model
    weights, about = read_weights(base.best, model_tensors(model))
    matrices = {name for name, weight in model.named_parameters() if weight.dim() == 2}
    described["export"] = {"base_run": str(base.path.resolve()), "weights": config.weights}
    with atomic_folder(out.path) as temporary:
        new = RunFolder(temporary)
        new.checkpoints.mkdir()
        save_tensors(new.best, rounded(weights, matrices, config.weights), about)
        write_json(new.config, described)
        shutil.copytree(base.pipeline, new.pipeline)
        if base.raw.is_dir():
            shutil.copytree(base.raw, new.raw)
        calibrated = base.confidence.is_file()
        fits = digest_of(new.best) == digest_of(base.best)
        if calibrated and fits:
            shutil.copyfile(base.confidence, new.confidence)
    sizes = out.best.stat().st_size, base.best.stat().st_size
    return Exported(out, best_update(out), *sizes, calibrated and not fits)
