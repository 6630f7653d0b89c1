"""Writing ``metrics.csv`` and TensorBoard events, row by row."""

from __future__ import annotations

import contextlib
import csv
import io
from typing import Self

from torch.utils.tensorboard import SummaryWriter

from nmtflex.files import atomic_file
from nmtflex.runs.folder import RunFolder

COLUMNS = (
    *("update", "epoch", "seconds", "target_tokens", "split", "loss", "perplexity", "bleu"),
    *("learning_rate", "gradient_norm", "gate_mean", "cps", "alignment_loss"),
)
NOT_CHARTED = ("update", "split")


class Metrics:
    """Writer of a run's numbers.

    Args:
        folder: The run.
        rows: Rows known to the checkpoint; later ones of an interrupted training are dropped.
        update: Optimiser steps done.
    """

    def __init__(self, folder: RunFolder, rows: int, update: int) -> None:
        lines = []
        if folder.metrics.exists():
            lines = folder.metrics.read_text(encoding="utf-8").splitlines(keepends=True)[1:]
        with atomic_file(folder.metrics) as kept:
            kept.write("".join([",".join(COLUMNS) + "\n", *lines[:rows]]).encode())
        self.file = folder.metrics.open("a", encoding="utf-8", newline="")
        self.events = SummaryWriter(str(folder.tensorboard), purge_step=update + 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        # If the disk is full, closing fails too, and would hide the first error.
        with contextlib.suppress(OSError) if error else contextlib.nullcontext():
            self.file.close()
        with contextlib.suppress(OSError) if error else contextlib.nullcontext():
            self.events.close()

    def write(self, split: str, values: dict[str, float | int | None]) -> None:
        """Add a row; None and missing values stay empty."""
        row = {"split": split, **{k: v for k, v in values.items() if v is not None}}
        line = io.StringIO()
        csv.DictWriter(line, COLUMNS, lineterminator="\n").writerow(row)
        self.file.write(line.getvalue())
        self.file.flush()
        update = values["update"]
        for name, value in row.items():
            if name not in NOT_CHARTED:
                self.events.add_scalar(f"{name}/{split}", value, update)
