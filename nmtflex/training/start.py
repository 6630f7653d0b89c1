"""Starting a training, or going on with one: the run folder is made, or must agree."""

from __future__ import annotations

import dataclasses
import fcntl
import fnmatch
import platform
import shutil
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import nmtflex
from nmtflex.config import (
    AUTO,
    FORMAT,
    Config,
    DeviceConfig,
    LoopConfig,
    ModelConfig,
    TrainConfig,
    nearest,
)
from nmtflex.corpus.integrity import Integrity
from nmtflex.corpus.store import PreparedCorpus, open_prepared
from nmtflex.errors import DataError, OptionError, RunError
from nmtflex.files import atomic_folder, check_contained, file_hash, is_free, write_json
from nmtflex.model.build import build_model
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.ranks import Ranks
from nmtflex.runs.device import open_device, storage_dtype
from nmtflex.runs.run import Run, RunFolder, read_run_config
from nmtflex.runs.threshold import threshold_value
from nmtflex.runs.weights import load_weights
from nmtflex.training.adam import Adam
from nmtflex.training.budget import check_states, find_budget, largest_piece
from nmtflex.training.checkpoint import clear_leftovers
from nmtflex.training.joining import (
    check_same_data,
    check_same_options,
    join,
    processes_of,
    whole_batches,
)
from nmtflex.training.loop import Trainer
from nmtflex.training.progress import Progress
from nmtflex.training.resume import Resumed, judge_by, resume
from nmtflex.training.same_options import check_same


def open_training(
    model_config: ModelConfig,
    train_config: TrainConfig,
    device_config: DeviceConfig,
    ranks: Ranks | None = None,
) -> Trainer:
    """Make a run folder or open an unfinished one, and return what trains it.

    Args:
        model_config: The model.
        train_config: The loop's options.
        device_config: Where it runs.
        ranks: Processes that share the work; only the first one touches the run folder.

    Raises:
        DataError: The prepared folder has no training data or cannot be read.
        OptionError: The options do not fit the data, or differ from those of the run.
        RunError: The folder is there and is no run, or its checkpoint is damaged.
    """
    corpus = open_prepared(train_config.data)
    return make_trainer(
        corpus, model_config, train_config, device_config, train_config.lr, ranks=ranks
    )


def make_trainer(
    corpus: PreparedCorpus,
    model_config: ModelConfig,
    train_config: LoopConfig,
    device_config: DeviceConfig,
    rate: float,
    base: Run | None = None,
    ranks: Ranks | None = None,
) -> Trainer:
    """Make or open a run folder on an opened corpus.

    Args:
        corpus: With training data.
        model_config: The model.
        train_config: The loop's options.
        device_config: Where it runs.
        rate: First learning rate.
        base: Run whose best weights to start from, instead of fresh ones.
        ranks: Processes that share the work.

    Raises:
        NmtflexError: As ``open_training``.
    """
    ranks = ranks or Ranks()
    _check_corpus(model_config, train_config, corpus)
    integrity = Integrity(corpus)
    integrity.check()
    check_same_data(ranks, corpus.fingerprint, corpus.folder)
    place = open_device(ranks.device(device_config))
    folder = RunFolder(train_config.run)
    automatic = train_config.batch_tokens == AUTO
    if automatic:
        known = ranks.from_first(_known_budget(folder) if ranks.first else None)
        train_config = dataclasses.replace(train_config, batch_tokens=known)
    config = _describe(corpus, model_config, train_config, device_config)
    check_same_options(ranks, config)
    data = config["data"]
    if base is not None:
        config["base"] = file_hash(base.folder.best)  # wherever the base run is moved to
        data["longest_source"] = base.config["data"]["longest_source"]  # belongs to the weights
    tau = threshold_value(train_config.threshold or "inf", data)
    train_tau = threshold_value(train_config.train_threshold or "inf", data)
    model, trained = _build(model_config, train_config, device_config, data, place, ranks)
    if model.decoder.attention.gated:
        model.decoder.attention.set_threshold(train_tau)
    if automatic and train_config.batch_tokens is None:
        budget = find_budget(model, corpus, ranks)
        train_config = dataclasses.replace(train_config, batch_tokens=budget)
        config["train"]["batch_tokens"] = budget
    optimizer = Adam(trained, rate)
    lock, processes, state = None, ranks.size, Resumed(Progress(rate=rate))
    if ranks.first:
        groups = (model_config, train_config, device_config)
        lock, processes = _open_folder(folder, corpus, config, groups, ranks.size)
        state = resume(folder, model, optimizer) or _begin(model, rate, base)
        judge_by(state.progress, train_config.best_by, folder.best)
    progress = join(ranks, model, optimizer, state.progress, state.trainer_file, train_config.seed)
    whole = whole_batches(train_config, ranks.from_first(processes))
    trainer = Trainer(whole, folder, corpus, model, optimizer, progress, tau, ranks)
    trainer.lock, trainer.integrity = lock, integrity
    trainer.notes = [*state.notes, *_notes(corpus, train_config, automatic), *_cut(trainer)]
    return trainer


def _build(
    model_config: ModelConfig,
    train_config: LoopConfig,
    device_config: DeviceConfig,
    data: dict[str, Any],
    place: torch.device,
    ranks: Ranks,
) -> tuple[Seq2Seq, list[nn.Parameter]]:
    """Build the model on its device, once it is known to fit; return its trained weights too.

    Raises:
        OptionError: It does not fit, or ``--freeze`` matches nothing.
    """
    sizes = data["source_size"], data["target_size"], data["longest_source"]
    autocast, dtype = device_config.dtype == "bfloat16", storage_dtype(device_config)
    with torch.device("meta"), _Undrawn():  # shapes without memory
        outline = build_model(model_config, *sizes, autocast).to(dtype=dtype)
    trainable(outline, train_config.frozen)
    check_states(outline, place, ranks.launch.local_size if place.type == "cpu" else 1)
    torch.manual_seed(train_config.seed)
    model = build_model(model_config, *sizes, autocast).to(place, dtype)
    return model, trainable(model, train_config.frozen)


class _Undrawn(TorchFunctionMode):
    """Draws no normal numbers: on "meta" that imports PyTorch's compiler, which takes 140 MB."""

    def __torch_function__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return what would be drawn into as it is."""
        if function in (nn.init.normal_, Tensor.normal_):
            return args[0] if args else kwargs["tensor"]
        return function(*args, **kwargs or {})


def _cut(trainer: Trainer) -> Iterator[str]:
    """Have batches cut that memory cannot hold, and say so."""
    ranks, batches = trainer.ranks, trainer.batches
    sizes = (len(pairs) * int(batches.widths(pairs).max()) for pairs in trainer.order)
    largest = max(sizes, default=0) // ranks.size
    fitting = largest_piece(trainer.model, batches, largest, ranks)
    trainer.gradients.largest = fitting
    if fitting is not None:
        yield (
            f"memory holds about {fitting:,} tokens of a batch, and the largest has {largest:,}: "
            f"such batches are cut into pieces, for the same update; a lower --batch-tokens makes "
            f"more updates of less time each"
        )


def _notes(corpus: PreparedCorpus, config: LoopConfig, automatic: bool) -> Iterator[str]:
    """Say what a person should know before the training begins."""
    if "valid" not in corpus.splits:
        yield (
            f"{corpus.folder} has no validation data: no BLEU is computed, and the last weights "
            f"count as the best"
        )
    if automatic:
        yield f"--batch-tokens auto: {config.token_budget:,} tokens a batch"


def _begin(model: Seq2Seq, rate: float, base: Run | None) -> Resumed:
    """Return where a training begins; from a run's best weights, if one is given."""
    if base is None:
        return Resumed(Progress(rate=rate))
    load_weights(base.folder.best, model)
    return Resumed(Progress(rate=rate, validated_update=-1))


def _known_budget(folder: RunFolder) -> int | None:
    """Return the tokens a batch that a run was made with; None where it is yet to be made."""
    if is_free(folder.path):
        return None
    known = read_run_config(folder).get("train", {}).get("batch_tokens")
    return known if type(known) is int and known > 0 else None


def _open_folder(
    folder: RunFolder,
    corpus: PreparedCorpus,
    config: dict[str, Any],
    groups: tuple[Config, ...],
    processes: int,
) -> tuple[IO[str], int]:
    """Make the run folder, or check that it is of this training.

    Args:
        folder: The run.
        corpus: What it is trained on.
        config: Its ``config.json`` as it would be now.
        groups: The options of model, training and device.
        processes: That share the training now.

    Returns:
        The lock, and how many processes the run began with.
    """
    config["processes"] = processes
    if is_free(folder.path):
        _make(folder.path, corpus.folder, config)
    before = read_run_config(folder)
    check_contained(folder.path, RunError)
    lock = _lock(folder)
    config["processes"] = processes_of(before, folder.config)
    if before != config:
        check_same(folder, before, config, groups)
        write_json(folder.config, config)
    clear_leftovers(folder)
    return lock, config["processes"]


def trainable(model: Seq2Seq, patterns: list[str]) -> list[nn.Parameter]:
    """Keep the weights whose names match from changing; return the others, each once.

    Raises:
        OptionError: A pattern matches nothing, or nothing is left to train.
    """
    weights = dict(model.named_parameters(remove_duplicate=False))  # tied ones by either name
    for pattern in patterns:
        matching = fnmatch.filter(weights, pattern)
        if not matching:
            groups = dict.fromkeys(f"{name.partition('.')[0]}.*" for name in weights)
            raise OptionError(
                f"--freeze {pattern!r} matches no weights; there are {', '.join(groups)}"
                f"{nearest(pattern, [*groups, *weights])}"
            )
        for name in matching:
            weights[name].requires_grad_(False)
    left = [weight for weight in model.parameters() if weight.requires_grad]
    if not left:
        raise OptionError(f"--freeze {' '.join(patterns)} leaves nothing to train")
    return left


def _check_corpus(model: ModelConfig, train: LoopConfig, corpus: PreparedCorpus) -> None:
    """Check what the options ask of the corpus."""
    if "train" not in corpus.splits or not corpus.store("train", "source").lengths.any():
        raise DataError(f"{corpus.folder} has no training data; preprocess with --train")
    if "valid" not in corpus.splits:
        _check_unvalidated(train, corpus.folder)
    source, target = corpus.pipeline.source.vocabulary, corpus.pipeline.target.vocabulary
    if model.tie_embeddings == "all" and source.tokens != target.tokens:
        raise OptionError(
            f"--tie-embeddings all needs one vocabulary for both sides, and {corpus.folder} has "
            f"two ({len(source)} and {len(target)} entries); preprocess with --joint"
        )


def _check_unvalidated(train: LoopConfig, folder: Path) -> None:
    """Refuse options that have no effect without validation data."""
    why = f"and {folder} has no validation data; preprocess with --valid"
    if train.patience or train.plateau:
        raise OptionError(f"--patience and --plateau count validations, {why}")
    if train.best_by == "perplexity":
        raise OptionError(f"--best-by perplexity is that of validations, {why}")


def _describe(
    corpus: PreparedCorpus, model: ModelConfig, train: LoopConfig, device: DeviceConfig
) -> dict[str, Any]:
    """Return the run's ``config.json``: the effective options, the data and the versions."""
    return {
        "format": FORMAT,
        "nmtflex": nmtflex.__version__,
        "python": platform.python_version(),
        "torch": version("torch"),
        "model": model.to_dict(),
        "train": train.to_dict() | {"data": str(corpus.folder.resolve())},
        "device": device.to_dict(),
        "data": {
            "fingerprint": corpus.fingerprint,
            "source_size": len(corpus.pipeline.source.vocabulary),
            "target_size": len(corpus.pipeline.target.vocabulary),
            "longest_source": int(corpus.store("train", "source").lengths.max()),
            "mean_valid_source": _mean_length(corpus, "valid"),
        },
    }


def _mean_length(corpus: PreparedCorpus, split: str) -> float | None:
    """Return the mean length of a split's sources that are not empty, in tokens."""
    if split not in corpus.splits:
        return None
    lengths = corpus.store(split, "source").lengths
    return float(lengths[lengths > 0].mean()) if (lengths > 0).any() else None


def _make(path: Path, prepared: Path, config: dict[str, Any]) -> None:
    check_contained(prepared, DataError)
    with atomic_folder(path) as temporary:
        write_json(temporary / "config.json", config)
        shutil.copytree(prepared / "pipeline", temporary / "pipeline")
        if (prepared / "raw").is_dir():
            shutil.copytree(prepared / "raw", temporary / "raw")
        (temporary / "checkpoints").mkdir()


def _lock(folder: RunFolder) -> IO[str]:
    """Keep a second training out of the run; the lock goes with the process, however it ends."""
    file = (folder.path / ".lock").open("a")  # it holds nothing, whatever it is a link to
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise RunError(
            f"{folder.path} is being trained by another process; wait for it or stop it first"
        ) from error
    return file
