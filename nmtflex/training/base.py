"""The run whose best weights a training begins with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nmtflex.config import DeviceConfig
from nmtflex.corpus.store import PreparedCorpus
from nmtflex.errors import DataError, OptionError
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.runs.opening import Run, load_run
from nmtflex.runs.weights import model_tensors


def open_base(base: Path, run: Path) -> Run:
    """Open a run to begin another one with its best weights.

    Args:
        base: Its folder.
        run: The folder of the other one.

    Raises:
        OptionError: Both are the same folder.
        RunError: The base is not a run, or is damaged.
    """
    found = load_run(base, DeviceConfig(device="cpu"))
    if run.resolve() == base.resolve():
        raise OptionError(f"--run {run} is the base run itself; give another folder")
    return found


def check_pipeline(corpus: PreparedCorpus, base: Run) -> None:
    """Check that a corpus was made with the base run's pipeline.

    Raises:
        DataError: It was not.
    """
    if what := corpus.pipeline.difference(base.pipeline):
        raise DataError(
            f"{corpus.folder} has another {what} than {base.folder.path}; preprocess with "
            f"--like {base.folder.path}"
        )


def take_weights(base: Run, model: Seq2Seq) -> list[str]:
    """Give a model the base run's weights wherever name and shape agree.

    Args:
        base: The base run.
        model: Changed in place.

    Returns:
        A note for the user on the weights that keep their initial values, if there are any.

    Raises:
        OptionError: No matrix agrees. (Biases as long as the vocabulary always do.)
    """
    theirs, own = model_tensors(base.model), model_tensors(model)
    taken = {
        name for name, one in own.items() if name in theirs and theirs[name].shape == one.shape
    }
    if not any(own[name].dim() > 1 for name in taken):
        raise OptionError(
            f"no matrix of {base.folder.path} has the name and shape of one of this model; take "
            f"its options with --config {base.folder.config}, and give those that change"
        )
    for name in taken:
        own[name].copy_(theirs[name])
    if not (left := own.keys() - taken):
        return []
    count, size = (sum(own[name].numel() for name in names) for names in (taken, own))
    known = {prefix for name in taken for prefix in _prefixes(name)}
    parts = {next(one for one in _prefixes(name) if one not in known) for name in left}
    return [
        f"{count:,} of {size:,} weights are those of {base.folder.path}; the others begin at "
        f"random: {', '.join(sorted(parts))}"
    ]


def _prefixes(name: str) -> Iterator[str]:
    """Yield a weight's modules from the outermost one, and then its name."""
    parts = name.split(".")
    return (".".join(parts[:depth]) for depth in range(1, len(parts) + 1))
