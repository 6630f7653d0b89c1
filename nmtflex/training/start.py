"""Starting a training, or resuming one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from nmtflex.config import AUTO, DeviceConfig, LoopConfig, ModelConfig, TrainConfig
from nmtflex.corpus.batches import Batches, Pairs
from nmtflex.corpus.integrity import Integrity
from nmtflex.corpus.sampling import open_batches, resegmenters
from nmtflex.corpus.store import PreparedCorpus, open_prepared
from nmtflex.errors import DataError, OptionError
from nmtflex.model.build import build_model, outlined
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.ops.torch_private import has_fast_bfloat16
from nmtflex.ranks import Ranks
from nmtflex.runs.device import open_device, storage_dtype
from nmtflex.runs.folder import RunFolder
from nmtflex.runs.limits import threshold_value
from nmtflex.runs.opening import Run
from nmtflex.training.base import check_pipeline, open_base, take_weights
from nmtflex.training.budget import check_states, largest_piece, settle_budget
from nmtflex.training.describe import Options, describe, describe_data
from nmtflex.training.folder import open_folder
from nmtflex.training.gradients import Gradients
from nmtflex.training.guidance import open_guidance
from nmtflex.training.joining import (
    began_with,
    check_same_data,
    check_same_options,
    join,
    whole_batches,
)
from nmtflex.training.loop import Trainer
from nmtflex.training.optimizers.build import build_optimizer
from nmtflex.training.progress import Progress
from nmtflex.training.resume import Resumed, judge_by, resume
from nmtflex.training.schedule import make_schedule
from nmtflex.training.setbacks import Setbacks
from nmtflex.training.trainable import factors_of, trainable
from nmtflex.training.validation import Validator


def open_training(
    model_config: ModelConfig,
    train_config: TrainConfig,
    device_config: DeviceConfig,
    ranks: Ranks | None = None,
) -> Trainer:
    """Make a run folder or open an unfinished one, and return its trainer.

    Args:
        model_config: The model.
        train_config: The loop's options.
        device_config: Where it runs.
        ranks: Processes that share the work; only the first one touches the run folder.

    Raises:
        DataError: The prepared folder has no training data or cannot be read.
        OptionError: The options do not fit the data or ``--init-from``, or differ from those of
            the run.
        RunError: The folder exists and is not a run, or its checkpoint is damaged; or so is the run
            of ``--init-from``.
    """
    options = Options(model_config, train_config, device_config)
    corpus, base = open_prepared(train_config.data), None
    if train_config.init_from is not None:
        base = open_base(train_config.init_from, train_config.run)
        check_pipeline(corpus, base)
    return make_trainer(corpus, options, train_config.lr, base, ranks)


def make_trainer(
    corpus: PreparedCorpus,
    options: Options,
    rate: float,
    base: Run | None = None,
    ranks: Ranks | None = None,
) -> Trainer:
    """Make or open a run folder on an opened corpus.

    Args:
        corpus: With training data.
        options: Of the run.
        rate: First learning rate.
        base: Run whose best weights to start from, where names and shapes agree.
        ranks: Processes that share the work.

    Raises:
        NmtflexError: As ``open_training``.
    """
    ranks = ranks or Ranks()
    _check_corpus(options, corpus)
    sampled = resegmenters(corpus, options.train.subword_alpha, options.train.bpe_dropout)
    integrity = Integrity(corpus)
    integrity.check()
    check_same_data(ranks, corpus.fingerprint, corpus.folder)
    place = open_device(ranks.device(options.device))
    check_same_options(ranks, options)
    data = describe_data(corpus, base)
    taus = options.train.threshold, options.train.train_threshold
    valid_tau, train_tau = (threshold_value(tau or "inf", data) for tau in taus)
    model, trained = _build(options, data, place, ranks)
    guidance = open_guidance(options.train, corpus, model, options.model.attention)
    left = take_weights(base, model) if base else []
    config = settle_budget(options.train, model, corpus, ranks)
    folder = RunFolder(config.run)
    processes = began_with(ranks, folder)
    whole = whole_batches(config, processes)
    batches = open_batches(
        corpus, sampled, whole.token_budget, whole.batch_sentences, guidance is not None
    )
    schedule = make_schedule(whole, batches)
    described = describe(corpus, options._replace(train=config), data, base, processes)
    optimizer = build_optimizer(config, trained, rate, factors_of(model, config.rate_factors))
    validated = -1 if base else 0  # the weights of a base run are validated before the first update
    state = Resumed(Progress(rate=rate, validated_update=validated, factor=schedule.factor(1)))
    if ranks.first:
        folder = open_folder(config.run, corpus.folder, described, options)
        state = resume(folder, model, optimizer) or state
        judge_by(state.progress, config.best_by, folder.best)
    progress = join(ranks, model, optimizer, state.progress, state.trainer_file, config.seed)
    order = batches.order(whole.seed, progress.epoch)
    largest = _largest_batch(batches, order) // ranks.size
    fitting = largest_piece(model, batches, largest, ranks, config.copies)
    piece = fitting and int(fitting / batches.stretch)
    validator = None
    if "valid" in corpus.splits:
        validator = Validator(
            corpus, whole.valid_beam, whole.token_budget, valid_tau, ranks, guidance
        )
    smoothing, beta = whole.label_smoothing, whole.gate_weight
    return Trainer(
        config=whole,
        folder=folder,
        model=model,
        optimizer=optimizer,
        gradients=Gradients(
            model, batches, smoothing, beta, ranks, train_tau, piece, guidance=guidance
        ),
        validator=validator,
        schedule=schedule,
        progress=progress,
        order=order,
        setbacks=Setbacks(corpus, config, progress),
        integrity=integrity,
        ranks=ranks,
        notes=[
            *state.notes,
            *(left if not progress.update else ()),
            *batches.notes(),
            *_notes(corpus, options, place, config, largest, fitting),
        ],
    )


def _check_corpus(options: Options, corpus: PreparedCorpus) -> None:
    """Check that the corpus has what the options need."""
    if "train" not in corpus.splits or not corpus.store("train", "source").lengths.any():
        raise DataError(f"{corpus.folder} has no training data; preprocess with --train")
    if "valid" not in corpus.splits:
        why = f"and {corpus.folder} has no validation data; preprocess with --valid"
        if options.train.patience or options.train.patient:
            raise OptionError(
                f"--patience, --plateau and --schedule plateau count validations, {why}"
            )
        if options.train.best_by == "perplexity":
            raise OptionError(f"--best-by perplexity needs validations, {why}")
    source, target = corpus.pipeline.source.vocabulary, corpus.pipeline.target.vocabulary
    if options.model.tie_embeddings == "all" and source.tokens != target.tokens:
        raise OptionError(
            f"--tie-embeddings all needs one vocabulary for both sides, and {corpus.folder} has "
            f"two ({len(source)} and {len(target)} entries); preprocess with --joint, "
            "or share the target's with --tie-embeddings target"
        )


def _build(
    options: Options, data: dict[str, Any], place: torch.device, ranks: Ranks
) -> tuple[Seq2Seq, list[torch.nn.Parameter]]:
    """Build the model on its device, if it fits; return it and its trained weights.

    Raises:
        OptionError: It does not fit, or ``--freeze`` or ``--lr-factor`` matches nothing.
    """
    sizes = data["source_size"], data["target_size"], data["longest_source"]
    autocast, dtype = options.device.dtype == "bfloat16", storage_dtype(options.device)
    with outlined():
        outline = build_model(options.model, *sizes, autocast).to(dtype=dtype)
    trainable(outline, options.train.frozen)
    factors_of(outline, options.train.rate_factors)
    processes = ranks.launch.local_size if place.type == "cpu" else 1
    check_states(outline, place, options.train.copies, processes)
    torch.manual_seed(options.train.seed)
    model = build_model(options.model, *sizes, autocast).to(place, dtype)
    return model, trainable(model, options.train.frozen)


def _largest_batch(batches: Batches, order: list[Pairs]) -> int:
    """Return the tokens of the largest batch, padding included."""
    most = max((len(pairs) * int(batches.widths(pairs).max()) for pairs in order), default=0)
    return int(most * batches.stretch)


def _notes(
    corpus: PreparedCorpus,
    given: Options,
    place: torch.device,
    config: LoopConfig,
    largest: int,
    fitting: int | None,
) -> Iterator[str]:
    """Yield notes for the user before the training begins.

    The largest batch of a process has ``largest`` tokens; memory holds ``fitting``, if fewer.
    """
    if "valid" not in corpus.splits:
        yield (
            f"{corpus.folder} has no validation data: no BLEU is computed, and the last weights "
            f"count as the best"
        )
    if given.device.dtype == "bfloat16" and place.type == "cpu" and not has_fast_bfloat16():
        yield (
            "--dtype bfloat16 is slow on this processor, which has no instructions for it: float32 "
            "is several times as fast"
        )
    if given.train.batch_tokens == AUTO:
        yield f"--batch-tokens auto: {config.token_budget:,} tokens a batch"
    if fitting is not None:
        yield (
            f"memory holds about {fitting:,} tokens of a batch, and the largest has {largest:,}: "
            f"such batches are cut into pieces, for the same update; a lower --batch-tokens makes "
            f"more updates of less time each"
        )
