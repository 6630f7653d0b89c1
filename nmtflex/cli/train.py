"""``nmtflex train``."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from nmtflex.cli.app import app
from nmtflex.cli.bind import command
from nmtflex.cli.console import note, stderr
from nmtflex.config import DeviceConfig, ModelConfig, TrainConfig
from nmtflex.errors import RunError

if TYPE_CHECKING:
    from nmtflex.model.run import RunFolder
    from nmtflex.training.loop import Trainer


@command(app, "train")
def train(train: TrainConfig, model: ModelConfig, device: DeviceConfig) -> None:
    """Train a model on a prepared folder; the same command again resumes."""
    from nmtflex.training.start import open_training

    run_trainer(open_training(model, train, device))


def run_trainer(trainer: Trainer) -> None:
    """Train to the end, and tell a person what came of it."""
    from nmtflex.model.run import read_run_config
    from nmtflex.training.display import Display
    from nmtflex.training.metrics import Metrics

    kind = read_run_config(trainer.folder)["model"]["attention"]["kind"]
    progress, path = trainer.progress, trainer.folder.path
    weights = sum(weight.numel() for weight in trainer.model.parameters() if weight.requires_grad)
    if trainer.done():
        limit = "--patience" if trainer.out_of_patience() else "--epochs or --updates"
        note(
            f"{path} is finished: {progress.update:,} updates, {progress.epoch} epochs; "
            f"raise {limit} to go on"
        )
        return
    word = f"resuming {path} at update {progress.update:,}" if progress.update else "training"
    note(f"{word}: {weights:,} weights, {kind} attention, {trainer.model.device}")
    before = dataclasses.replace(progress)
    with (
        Metrics(trainer.folder, progress.metric_rows, progress.update) as metrics,
        Display(
            stderr, trainer.total_updates(), progress.update, _history(trainer.folder)
        ) as display,
    ):
        trainer.train(display, metrics)
    tokens = progress.target_tokens - before.target_tokens
    validating = progress.validation_seconds - before.validation_seconds
    training = progress.seconds - before.seconds - validating
    speed = tokens / training if training else 0.0
    best = "" if progress.best_score is None else f"; best at update {progress.best_update:,}"
    note(
        f"{path} is done: {progress.update:,} updates; {tokens:,} target tokens in "
        f"{training:,.0f} s ({speed:,.0f} tokens/s) and {validating:,.0f} s of validation{best}"
    )


def _history(folder: RunFolder) -> list[float]:
    """Return the BLEU of the validations so far, for the curve in a terminal."""
    from nmtflex.analysis.learning import points, read_metrics

    try:
        _, scores = points(read_metrics(folder), "bleu", "valid", by_time=False)
    except RunError:  # nothing written yet, or spoilt: no reason not to train
        return []
    return scores
