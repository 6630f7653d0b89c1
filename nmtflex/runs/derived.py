"""Runs made from another run: its text pipeline, options and raw data, and weights of their own."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor

from nmtflex.errors import OptionError, RunError
from nmtflex.files import atomic_folder, check_contained, is_free, write_json
from nmtflex.runs.folder import RunFolder, read_run_config
from nmtflex.runs.weights import save_tensors


def check_derived(out: Path, base: RunFolder) -> dict[str, Any]:
    """Check that a run can be made from another; return the other's ``config.json``.

    Raises:
        OptionError: The new folder exists.
        RunError: The folder is not a run, or is damaged.
    """
    if not is_free(out):
        raise OptionError(f"--run {out} exists already; remove it or choose another folder")
    described = read_run_config(base)
    check_contained(base.path, RunError)
    return described


@contextlib.contextmanager
def derived_run(
    out: Path,
    base: RunFolder,
    described: dict[str, Any],
    weights: dict[str, Tensor],
    about: dict[str, str],
) -> Iterator[RunFolder]:
    """Make a run, which is there when the block ends; until then it has another name.

    Args:
        out: Its folder.
        base: The run that its pipeline and raw data come from.
        described: Its ``config.json``.
        weights: Its best weights.
        about: The metadata of their file.
    """
    with atomic_folder(out) as temporary:
        new = RunFolder(temporary)
        new.checkpoints.mkdir()
        save_tensors(new.best, weights, about)
        write_json(new.config, described)
        shutil.copytree(base.pipeline, new.pipeline)
        if base.raw.is_dir():
            shutil.copytree(base.raw, new.raw)
        yield new
