"""The run folder of a training: made or opened, checked and locked."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path
from typing import Any

from nmtflex.errors import DataError, RunError
from nmtflex.files import atomic_folder, check_contained, is_free, write_json
from nmtflex.runs.folder import RunFolder, read_run_config
from nmtflex.training.checkpoint import clear_leftovers
from nmtflex.training.describe import Options
from nmtflex.training.joining import processes_of
from nmtflex.training.same_options import check_same


class LockedFolder(RunFolder):
    """A run folder locked against other trainings, until it is closed or the process ends.

    Args:
        path: The folder.

    Raises:
        RunError: Another process trains the run.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._lock = (path / ".lock").open("a")  # opened to append: nothing is written
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._lock.close()
            raise RunError(
                f"{path} is being trained by another process; wait for it or stop it first"
            ) from error

    def close(self) -> None:
        """Let other trainings have the folder."""
        self._lock.close()


def open_folder(
    path: Path, prepared: Path, config: dict[str, Any], options: Options
) -> LockedFolder:
    """Make a run folder, or open one and check that it belongs to this training.

    Args:
        path: The folder.
        prepared: The prepared folder that it is trained on.
        config: Its ``config.json`` as it would be now; ``processes`` becomes the run's own.
        options: Of this training.

    Raises:
        OptionError: The run has other options.
        RunError: The folder is not a run, is damaged, or another process trains it.
        DataError: The prepared folder has links to outside.
    """
    if is_free(path):
        _make(path, prepared, config)
    before = read_run_config(RunFolder(path))
    check_contained(path, RunError)
    folder = LockedFolder(path)
    config["processes"] = processes_of(before, folder.config)
    if before != config:
        check_same(folder, before, config, options)
        write_json(folder.config, config)
    clear_leftovers(folder)
    return folder


def _make(path: Path, prepared: Path, config: dict[str, Any]) -> None:
    check_contained(prepared, DataError)
    with atomic_folder(path) as temporary:
        write_json(temporary / "config.json", config)
        shutil.copytree(prepared / "pipeline", temporary / "pipeline")
        if (prepared / "raw").is_dir():
            shutil.copytree(prepared / "raw", temporary / "raw")
        (temporary / "checkpoints").mkdir()
