"""``nmtflex train``."""

from __future__ import annotations

import dataclasses

from nmtflex.cli.app import app
from nmtflex.cli.bind import command
from nmtflex.cli.console import note, stderr
from nmtflex.config import DeviceConfig, ModelConfig, TrainConfig


@command(app, "train")
def train(train: TrainConfig, model: ModelConfig, device: DeviceConfig) -> None:
    """Train a model on a prepared folder; the same command again resumes."""
    from nmtflex.training.display import Display
    from nmtflex.training.metrics import Metrics
    from nmtflex.training.start import open_training

    trainer = open_training(model, train, device)
    progress = trainer.progress
    weights = sum(parameter.numel() for parameter in trainer.model.parameters())
    if trainer.done():
        limit = "--patience" if trainer.out_of_patience() else "--epochs or --updates"
        note(
            f"{train.run} is finished: {progress.update:,} updates, {progress.epoch} epochs; "
            f"raise {limit} to go on"
        )
        return
    word = f"resuming {train.run} at update {progress.update:,}" if progress.update else "training"
    note(f"{word}: {weights:,} weights, {model.attention.kind} attention, {trainer.model.device}")
    before = dataclasses.replace(progress)
    with (
        Metrics(trainer.folder, progress.metric_rows, progress.update) as metrics,
        Display(stderr, trainer.total_updates(), progress.update) as display,
    ):
        trainer.train(display, metrics)
    tokens = progress.target_tokens - before.target_tokens
    validating = progress.validation_seconds - before.validation_seconds
    training = progress.seconds - before.seconds - validating
    speed = tokens / training if training else 0.0
    best = "" if progress.best_score is None else f"; best at update {progress.best_update:,}"
    note(
        f"{train.run} is done: {progress.update:,} updates; {tokens:,} target tokens in "
        f"{training:,.0f} s ({speed:,.0f} tokens/s) and {validating:,.0f} s of validation{best}"
    )
