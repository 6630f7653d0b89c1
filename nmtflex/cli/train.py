"""``nmtflex train``."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING

from nmtflex.cli.app import app, given_line
from nmtflex.cli.bind import command
from nmtflex.cli.console import note, stderr
from nmtflex.cli.processes import share_work
from nmtflex.config import DeviceConfig, ModelConfig, ProcessConfig, TrainConfig
from nmtflex.errors import RunError
from nmtflex.text.visible import counted

if TYPE_CHECKING:
    from nmtflex.runs.folder import RunFolder
    from nmtflex.runs.metrics import MetricsRow
    from nmtflex.training.loop import Trainer
    from nmtflex.training.progress import Progress


@command(app, "train")
def train(
    train: TrainConfig, model: ModelConfig, device: DeviceConfig, processes: ProcessConfig
) -> None:
    """Train a model on a prepared folder; run the same command again to resume.

    An existing run supplies all options that are not given, even DATA: nmtflex train --run RUN
    --epochs 20. Options that differ from the run are errors, except length, validation, logging,
    device and threads.

    --preset and --config FILE hold options under one name; flags override the file, and the file
    the preset. --print-config prints what they amount to.

    Several processes can train one model: use --processes N on one machine, or torchrun -m nmtflex
    -- train ... on several. --batch-tokens and --batch-sentences are per process; a run resumed
    with another number of processes keeps its batches.
    """
    from nmtflex.corpus.store import open_prepared

    if share_work(processes):
        return
    open_prepared(train.data)  # fail before the slow import of PyTorch
    from nmtflex.ranks import open_ranks
    from nmtflex.training.start import open_training

    run_trainer(open_training(model, train, device, open_ranks()))


def run_trainer(trainer: Trainer) -> None:
    """Train to the end; only the first process reports progress and results."""
    with contextlib.closing(trainer.folder):
        _run(trainer)


def _run(trainer: Trainer) -> None:
    from rich.console import Console

    from nmtflex.runs.commands import record_command
    from nmtflex.runs.folder import read_run_config
    from nmtflex.training.checkpoint import check_room
    from nmtflex.training.display import Display
    from nmtflex.training.metrics import Metrics

    if not trainer.ranks.first:
        trainer.train(
            Display(Console(quiet=True, force_terminal=False), trainer.total_updates(), 0), None
        )
        return
    kind = read_run_config(trainer.folder)["model"]["attention"]["kind"]
    progress, path = trainer.progress, trainer.folder.path
    for line in trainer.notes:
        note(line)
    weights = sum(weight.numel() for weight in trainer.model.parameters() if weight.requires_grad)
    if trainer.done():
        limit = "--patience" if trainer.out_of_patience() else "--epochs or --updates"
        note(
            f"{path} is finished: {counted(progress.update, 'update')}, "
            f"{counted(progress.epoch, 'epoch')}; raise {limit} to continue"
        )
        return
    check_room(trainer.folder, trainer.model, trainer.config.copies)
    word = f"resuming {path} at update {progress.update:,}" if progress.update else "training"
    size = trainer.ranks.size
    where = f"{trainer.model.device}" if size == 1 else f"{size} processes"
    note(f"{word}: {weights:,} weights, {kind} attention, {where}")
    record_command(trainer.folder, given_line(), progress.update)
    before = dataclasses.replace(progress)
    history = [row.values["bleu"] for row in _validations(trainer.folder)]
    with (
        Metrics(trainer.folder, progress.metric_rows, progress.update) as metrics,
        Display(stderr, trainer.total_updates(), progress.update, history) as display,
    ):
        trainer.train(display, metrics)
    tokens = progress.target_tokens - before.target_tokens
    validating = progress.validation_seconds - before.validation_seconds
    training = progress.seconds - before.seconds - validating
    speed = tokens / training if training else 0.0
    note(
        f"{path} finished after {counted(progress.update, 'update')}; {tokens:,} target tokens in "
        f"{training:,.0f} s ({speed:,.0f} tokens/s), plus {validating:,.0f} s of validation"
        f"{_best(trainer.folder, progress)}{_setbacks(progress)}"
    )


def _setbacks(progress: Progress) -> str:
    """Return the counts of what went wrong since training began, if anything did."""
    skipped = counted(progress.skipped, "update")
    split = counted(progress.batches_split, "batch", "batches")
    left_out = counted(progress.pairs_left_out, "pair")
    counts = {
        f"{skipped} skipped (loss or gradient not finite, or out of memory)": progress.skipped,
        f"{split} halved for lack of memory": progress.batches_split,
        f"{left_out} left out for lack of memory": progress.pairs_left_out,
    }
    return "".join(f"; {what}" for what, count in counts.items() if count)


def _best(folder: RunFolder, progress: Progress) -> str:
    """Return the update with the best weights and its scores; "" without validations."""
    if progress.best_score is None:
        return ""
    scores = {row.update: row.values for row in _validations(folder)}.get(progress.best_update)
    words = f" (BLEU {scores['bleu']:.2f}, perplexity {scores['perplexity']:.2f})" if scores else ""
    return f"; best at update {progress.best_update:,}{words}"


def _validations(folder: RunFolder) -> list[MetricsRow]:
    """Return the validations so far, from ``metrics.csv``."""
    from nmtflex.runs.metrics import read_metrics

    try:
        rows = read_metrics(folder)
    except RunError:  # not written yet, or damaged; train anyway
        return []
    return [
        row for row in rows if row.split == "valid" and {"bleu", "perplexity"} <= set(row.values)
    ]
