"""A run without its training: what translating needs, with weights in fewer bits if wanted."""

from __future__ import annotations

import shutil
from typing import NamedTuple

from nmtflex.config import ExportConfig
from nmtflex.errors import RunError
from nmtflex.runs.derived import check_derived, derived_run
from nmtflex.runs.folder import RunFolder
from nmtflex.runs.opening import outline_run, without_best
from nmtflex.runs.rounding import rounded
from nmtflex.runs.weights import best_update, digest_of, model_tensors, read_weights


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
    described = check_derived(out.path, base)
    if not base.best.exists():
        raise RunError(without_best(base))
    model = outline_run(config.base_run).model
    weights, about = read_weights(base.best, model_tensors(model))
    matrices = {name for name, weight in model.named_parameters() if weight.dim() == 2}
    described["export"] = {"base_run": str(base.path.resolve()), "weights": config.weights}
    small = rounded(weights, matrices, config.weights)
    with derived_run(out.path, base, described, small, about) as new:
        calibrated = base.confidence.is_file()
        fits = digest_of(new.best) == digest_of(base.best)
        if calibrated and fits:
            shutil.copyfile(base.confidence, new.confidence)
    sizes = out.best.stat().st_size, base.best.stat().st_size
    return Exported(out, best_update(out), *sizes, calibrated and not fits)
