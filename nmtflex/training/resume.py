"""Going on from the last checkpoint that is whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from nmtflex.errors import RunError
from nmtflex.files import remove_folder
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.runs.folder import RunFolder, update_of
from nmtflex.runs.weights import load_tensors
from nmtflex.training.adam import Adam
from nmtflex.training.checkpoint import TRAINER, load_checkpoint
from nmtflex.training.progress import Progress

DAMAGED = ".damaged"  # ends the name of a checkpoint that is no longer counted


@dataclass
class Resumed:
    """Where a training goes on from."""

    progress: Progress
    trainer_file: Path | None = None  # the checkpoint's tensors beside the weights
    notes: list[str] = field(default_factory=list)  # for a person: a line a damaged checkpoint


def resume(folder: RunFolder, model: Seq2Seq, optimizer: Adam) -> Resumed | None:
    """Restore the last checkpoint that is whole.

    Damaged ones after it are renamed, as the training is to write these updates again; nothing is
    renamed before a whole one is found.

    Returns:
        How far the training was; None where no checkpoint was written yet.

    Raises:
        RunError: There are checkpoints, and none is whole.
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
        f"{'; '.join(map(str, faults.values()))}; no checkpoint of {folder.path} is whole: copy "
        f"them anew from where the run was made, go on from {folder.best.name} with nmtflex "
        f"finetune, or begin anew in another --run"
    )


def judge_by(progress: Progress, best_by: str, best: Path) -> None:
    """Restate the best score in the terms of ``--best-by``, which may have changed.

    BLEU is never below 0 and minus a perplexity always is, which tells what a score was.

    Args:
        progress: Changed in place.
        best_by: ``bleu`` or ``perplexity``.
        best: The best weights, which carry their BLEU.

    Raises:
        RunError: That file is damaged or gone.
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
        raise RunError(f"{best} says no BLEU; go on with --best-by perplexity") from error


def _set_aside(checkpoint: Path, fault: RunError, whole: Path) -> str:
    """Take a damaged checkpoint out of the count; say so."""
    aside = checkpoint.with_name(checkpoint.name + DAMAGED)
    if aside.exists():
        remove_folder(aside)
    checkpoint.rename(aside)
    return (
        f"{fault}; it is now {aside.name}, which may be deleted, and the training goes on from "
        f"the one before it, update {update_of(whole):,}"
    )
