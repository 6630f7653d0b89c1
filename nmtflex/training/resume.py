"""Resuming from the last undamaged checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from nmtflex.errors import RunError
from nmtflex.files import remove_folder
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.runs.folder import RunFolder, update_of
from nmtflex.runs.weights import load_tensors
from nmtflex.training.checkpoint import TRAINER, load_checkpoint
from nmtflex.training.optimizers.base import Optimizer
from nmtflex.training.progress import Progress

DAMAGED = ".damaged"  # suffix of a checkpoint that is set aside


@dataclass
class Resumed:
    """The state from which a training resumes."""

    progress: Progress
    trainer_file: Path | None = None  # the checkpoint's tensors besides the weights
    notes: list[str] = field(default_factory=list)  # for the user: one per damaged checkpoint


def resume(folder: RunFolder, model: Seq2Seq, optimizer: Optimizer) -> Resumed | None:
    """Restore the last undamaged checkpoint.

    Damaged ones after it are renamed, since the training will write these updates again; but only
    once an undamaged one is found.

    Returns:
        The state; None if there is no checkpoint yet.

    Raises:
        RunError: All checkpoints are damaged.
    """
    faults: dict[Path, RunError] = {}
    for checkpoint in reversed(folder.updates()):
        try:
            progress = load_checkpoint(checkpoint, model, optimizer)
        except RunError as error:
            faults[checkpoint] = error
            continue
        notes = [_set_aside(path, faults[path], checkpoint) for path in faults]
        return Resumed(progress, checkpoint / TRAINER, notes)
    if not faults:
        return None
    raise RunError(
        f"{'; '.join(map(str, faults.values()))}; all checkpoints of {folder.path} are damaged: "
        f"copy them again from the original run, continue from {folder.best.name} with nmtflex "
        f"finetune, or start again in another --run"
    )


def judge_by(progress: Progress, best_by: str, best: Path) -> None:
    """Convert the best score to ``--best-by``, which may have changed.

    BLEU is never below 0 and minus a perplexity always is, so the sign shows what a score was.

    Args:
        progress: Changed in place.
        best_by: ``bleu`` or ``perplexity``.
        best: The best weights, whose metadata has their BLEU.

    Raises:
        RunError: That file is damaged or missing.
    """
    score = progress.best_score
    if score is None or (score < 0) == (best_by == "perplexity"):
        return
    if best_by == "perplexity":
        perplexity = progress.best_perplexity
        progress.best_score = None if perplexity is None else -perplexity
        return
    _, about = load_tensors(best)
    try:
        progress.best_score = float(about["bleu"])
    except (KeyError, ValueError) as error:
        raise RunError(f"{best} has no BLEU; resume with --best-by perplexity") from error


def _set_aside(checkpoint: Path, fault: RunError, whole: Path) -> str:
    """Rename a damaged checkpoint; return a note."""
    aside = checkpoint.with_name(checkpoint.name + DAMAGED)
    if aside.exists():
        remove_folder(aside)
    checkpoint.rename(aside)
    return (
        f"{fault}; it is now {aside.name}, which may be deleted, and the training resumes from "
        f"the one before it, update {update_of(whole):,}"
    )
