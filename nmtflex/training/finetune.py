"""Finetuning: the same loop, from a run's best weights."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from nmtflex.config import (
    AdamConfig,
    AttentionConfig,
    DeviceConfig,
    FinetuneConfig,
    FlexibleConfig,
    ModelConfig,
    SGDConfig,
)
from nmtflex.corpus.store import open_prepared
from nmtflex.errors import OptionError
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.ranks import Ranks
from nmtflex.runs.opening import Run
from nmtflex.training.base import check_pipeline, open_base
from nmtflex.training.checkpoint import last_rate
from nmtflex.training.describe import Options
from nmtflex.training.loop import Trainer
from nmtflex.training.start import make_trainer


def open_finetuning(
    config: FinetuneConfig, device: DeviceConfig, ranks: Ranks | None = None
) -> Trainer:
    """Make the run folder of a finetuning or open an unfinished one, and return its trainer.

    Shu and Nakayama, section 3.2: after a training, eq. 9 rewards large gates, so that fewer
    positions are below the threshold. The optimiser is fresh. All processes read the base run.

    Raises:
        DataError: The prepared folder cannot be read, or was not made with the run's pipeline.
        OptionError: ``--beta`` or ``--tau`` for a mechanism without a gate, say.
        RunError: The base is not a run, or is damaged.
    """
    base = open_base(config.base_run, config.run)
    config = effective(config, base)
    rate = config.lr
    if config.data is None or rate is None:
        raise ValueError("the effective options name the data and the learning rate")
    corpus = open_prepared(config.data)
    check_pipeline(corpus, base)
    if base.model.gated and config.tau is None and "valid" in corpus.splits:
        config = dataclasses.replace(config, tau="auto")
    options = Options(_model(base.model_config, config), config, device)
    return make_trainer(corpus, options, rate, base, ranks)


def _model(model: ModelConfig, config: FinetuneConfig) -> ModelConfig:
    """Return the base run's model, with or without a remainder as asked: it has no weights."""
    attention = model.attention
    if config.remainder is None or not isinstance(attention, FlexibleConfig):
        return model
    attention = dataclasses.replace(attention, remainder=config.remainder)
    return dataclasses.replace(model, attention=attention)


def effective(config: FinetuneConfig, base: Run) -> FinetuneConfig:
    """Fill in the defaults that depend on the base run.

    Raises:
        OptionError: An option needs another attention, or the base run's rate is of another
            optimiser.
    """
    check_attention(config, base.model, base.model_config.attention, str(config.base_run))
    before = base.config.get("train", {})
    values = config.to_dict()
    usual = {"data": before.get("data"), "beta": 0.1 if base.model.has_gate else 0.0}
    if config.lr is None:
        _check_optimizer(config, before)
        usual["lr"] = base.config.get("average", {}).get("rate") or last_rate(base.folder)
    if config.batch_tokens is None and config.batch_sentences is None:
        usual |= {name: before.get(name) for name in ("batch_tokens", "batch_sentences")}
    values |= {name: value for name, value in usual.items() if values[name] is None}
    data = values["data"]
    # Unlike Path.is_dir, this takes names that are too long for any file.
    if config.data is None and not (isinstance(data, str) and os.path.isdir(data)):  # noqa: PTH112
        raise OptionError(
            f"{config.base_run} was trained on {data}, which does not exist; give --data"
        )
    return FinetuneConfig.from_dict(values)


def check_attention(
    config: FinetuneConfig, model: Seq2Seq, attention: AttentionConfig, name: str
) -> None:
    """Check that attention has what the options need.

    Args:
        config: The options.
        model: That is finetuned.
        attention: Its mechanism.
        name: The run, or whatever the model is, for messages.

    Raises:
        OptionError: It has not.
    """
    if not model.has_gate and config.beta:
        raise OptionError(
            f"--beta {config.beta} weighs the gate of flexible attention or of --attend-every "
            f"gate, and {name} has {attention.kind} at every step; leave it out"
        )
    remainder = "--remainder" if config.remainder else "--no-remainder"
    for flag, given, possible in (
        (f"--tau {config.tau}", config.tau, model.gated),
        (f"--train-tau {config.train_tau}", config.train_tau, model.gated),
        (remainder, config.remainder, isinstance(attention, FlexibleConfig)),
    ):
        if given is not None and not possible:
            raise OptionError(
                f"{flag} needs flexible attention, and {name} has {attention.kind}; leave it out"
            )


def _check_optimizer(config: FinetuneConfig, before: dict[str, Any]) -> None:
    """Check that the base run's rate suits the optimiser: Adam's is far lower than SGD's.

    Raises:
        OptionError: It does not.
    """
    stored = before.get("optimizer")
    kind = stored.get("kind") if isinstance(stored, dict) else AdamConfig.kind
    if (kind == SGDConfig.kind) != (config.optimizer.kind == SGDConfig.kind):
        raise OptionError(
            f"{config.base_run} was trained with --optimizer {kind}, and its learning rate does "
            f"not suit {config.optimizer.kind}; give --lr, or --optimizer {kind}"
        )
