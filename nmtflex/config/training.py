"""Options of the training loop."""

from __future__ import annotations

import contextlib
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from nmtflex.config.base import Config, Opt
from nmtflex.config.optimizer import AdamConfig, OptimizerConfig

AUTO = -1  # tokens per batch: as many as fit in memory
USUAL_PLATEAU = 3  # validations, of --schedule plateau


def _factor_fault(text: str) -> str | None:
    """Return what is wrong with a value of ``--lr-factor``, or None."""
    pattern, _, factor = text.rpartition("=")
    with contextlib.suppress(ValueError):
        if pattern and 0 < float(factor) < math.inf:
            return None
    return f"--lr-factor must be PATTERN=FACTOR with a factor above 0, not {text!r}"


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopConfig(Config):
    """Options that train and finetune share."""

    usual_epochs: ClassVar[int] = 10

    run: Annotated[
        Path,
        Opt(
            "Run folder to create. If it exists, training resumes, and options that are not given "
            "keep the run's values.",
            also=("--out",),
        ),
    ]
    epochs: Annotated[
        int | None,
        Opt(
            "Passes over the training data (default 10; finetune: 1).",
            ge=1,
            may_change=True,
            replaces=("updates",),
        ),
    ] = None
    updates: Annotated[
        int | None,
        Opt(
            "Optimiser steps to train, instead of --epochs.",
            ge=1,
            may_change=True,
            replaces=("epochs",),
        ),
    ] = None
    batch_tokens: Annotated[
        int | None,
        Opt(
            "Tokens per batch and process: sentences x longest side, including padding (default "
            "4096; finetune: as in the base run). auto: as many as fit in memory, at most 65,536 "
            "(CPU: 8,192) and a hundredth of an epoch.",
            ge=1,
            words={"auto": AUTO},
            replaces=("batch_sentences",),
        ),
    ] = None
    batch_sentences: Annotated[
        int | None,
        Opt(
            "Sentences per batch, instead of --batch-tokens (Shu and Nakayama: 32).",
            ge=1,
            replaces=("batch_tokens",),
        ),
    ] = None
    accumulate: Annotated[
        int, Opt("Batches whose gradients are combined into one update.", ge=1)
    ] = 1
    optimizer: Annotated[
        OptimizerConfig, Opt("Optimiser: Adam, Adam with decoupled weight decay, or SGD.")
    ] = AdamConfig()
    schedule: Annotated[
        Literal["constant", "plateau", "inverse-sqrt", "cosine", "linear"],
        Opt(
            "Learning rate after --warmup: constant; plateau: halved as --plateau says; "
            "inverse-sqrt: falls with the root of the update (Vaswani et al., eq. 3); cosine, "
            "linear: fall towards 0 at the end of the training, and to the new end when a run "
            "trains for longer."
        ),
    ] = "constant"
    warmup: Annotated[
        int,
        Opt("Updates in which the rate rises linearly to --lr (Vaswani et al.: 4000).", ge=0),
    ] = 0
    halve_from: Annotated[
        int,
        Opt(
            "Halve the learning rate at the start of this epoch and of every later one; 0 never "
            "(Shu and Nakayama: 4).",
            ge=0,
        ),
    ] = 0
    plateau: Annotated[
        int,
        Opt(
            "Halve the learning rate after this many validations without a new best; 0 never, or "
            f"{USUAL_PLATEAU} with --schedule plateau.",
            ge=0,
        ),
    ] = 0
    lr_factor: Annotated[
        list[str],
        Opt(
            "PATTERN=FACTOR: multiply the learning rate of the weights with these names, as in "
            "'encoder.*=0.1'; may be repeated, and the last match counts."
        ),
    ] = field(default_factory=list)
    clip: Annotated[
        float, Opt("Largest gradient norm; 0 for no clipping (Shu and Nakayama: 3).", ge=0)
    ] = 3.0
    label_smoothing: Annotated[
        float, Opt("Probability mass spread evenly over the vocabulary.", ge=0, lt=1)
    ] = 0.0
    guided_weight: Annotated[
        float,
        Opt(
            "Weight of a loss that draws attention to the links of preprocess --guided-alignment "
            "(Chen et al. 2016); 0 for none.",
            ge=0,
        ),
    ] = 0.0
    guided_layer: Annotated[
        int | None,
        Opt("Guide this attending decoder layer, counted from 1 (default: the mean of all).", ge=1),
    ] = None
    guided_head: Annotated[
        int | None,
        Opt("Guide this head, counted from 1 (default: the mean of all).", ge=1),
    ] = None
    ema: Annotated[
        float,
        Opt(
            "Decay of a moving average of the weights, such as 0.999, that is validated and kept "
            "as the best; 0 for none.",
            ge=0,
            lt=1,
        ),
    ] = 0.0
    subword_alpha: Annotated[
        float | None,
        Opt(
            "Segment every sentence anew in every epoch, by sampling from a SentencePiece unigram "
            "model with probabilities to this power; lower is more diverse (Kudo 2018: 0.2 or "
            "0.5).",
            gt=0,
        ),
    ] = None
    bpe_dropout: Annotated[
        float,
        Opt(
            "Segment every sentence anew in every epoch, by leaving out each BPE merge with this "
            "probability (Provilkov et al. 2020: 0.1).",
            ge=0,
            lt=1,
        ),
    ] = 0.0
    validate_every: Annotated[
        str | None,
        Opt(
            "Validate every N updates, or every N minutes with 30m (default: after each epoch).",
            may_change=True,
        ),
    ] = None
    save_every: Annotated[
        float, Opt("Minutes between checkpoints outside validations.", gt=0, may_change=True)
    ] = 10.0
    bad_updates: Annotated[
        int,
        Opt(
            "Stop after this many skipped updates in a row. An update is skipped when the loss or "
            "a gradient is not finite, or when memory runs out.",
            ge=1,
            may_change=True,
        ),
    ] = 10
    valid_beam: Annotated[
        int,
        Opt(
            "Beam size in validation; translations are cut at twice the reference's tokens plus "
            "ten.",
            ge=1,
            le=1000,
            may_change=True,
        ),
    ] = 5
    best_by: Annotated[
        Literal["bleu", "perplexity"],
        Opt(
            "How to choose the best checkpoint; if BLEU is equal, lower perplexity wins.",
            may_change=True,
        ),
    ] = "bleu"
    patience: Annotated[
        int,
        Opt("Stop after this many validations without a new best; 0 never.", ge=0, may_change=True),
    ] = 0
    keep: Annotated[
        int, Opt("Recent checkpoints to keep, besides the best.", ge=1, may_change=True)
    ] = 2
    seed: Annotated[
        int, Opt("Random seed for initial weights, data order and dropout.", ge=0, lt=2**63)
    ] = 1
    log_every: Annotated[
        int, Opt("Updates between rows in metrics.csv.", ge=1, may_change=True)
    ] = 50

    @property
    def base(self) -> Path | None:
        """The run whose best weights to begin with."""
        return None

    @property
    def gate_weight(self) -> float:
        """Beta: the weight of the mean gate in the loss."""
        return 0.0

    @property
    def frozen(self) -> list[str]:
        """Patterns of weights that are not trained."""
        return []

    @property
    def threshold(self) -> str | None:
        """Penalty threshold in validations, as text; None for no threshold."""
        return None

    @property
    def train_threshold(self) -> str | None:
        """Penalty threshold in training itself."""
        return None

    @property
    def rate_factors(self) -> dict[str, float]:
        """The factors of ``--lr-factor`` by pattern, in order.

        Raises:
            ValueError: A factor is not a number.
        """
        parts = (text.rpartition("=") for text in self.lr_factor)
        return {pattern: float(factor) for pattern, _, factor in parts}

    @property
    def patient(self) -> int:
        """Validations without a new best after which the rate is halved; 0: never."""
        return self.plateau or (USUAL_PLATEAU if self.schedule == "plateau" else 0)

    @property
    def copies(self) -> int:
        """How many numbers optimiser and average keep for each weight that is trained."""
        return self.optimizer.copies + (1 if self.ema else 0)

    @property
    def token_budget(self) -> int:
        """Tokens per batch, unless batches are counted in sentences."""
        return self.batch_tokens or 4096

    @property
    def last_epoch(self) -> int | None:
        """Epochs to train, or None if updates are counted."""
        return self.epochs or (None if self.updates else self.usual_epochs)

    @property
    def save_seconds(self) -> float:
        """Seconds between checkpoints."""
        return 60 * self.save_every

    def interval(self) -> tuple[int | None, float | None]:
        """Return (updates, seconds) between validations; both None means each epoch."""
        if self.validate_every is None:
            return None, None
        if self.validate_every.endswith("m"):
            return None, 60 * float(self.validate_every[:-1])
        return int(self.validate_every), None

    def validate(self) -> list[str]:
        """Check rules that involve several options."""
        faults = []
        if self.epochs and self.updates:
            faults.append("give --epochs or --updates, not both")
        if self.batch_tokens and self.batch_sentences:
            faults.append("give --batch-tokens or --batch-sentences, not both")
        every = self.validate_every
        if not self.guided_weight:
            why = "without --guided-weight"
            faults += self.idle({"guided_layer": why, "guided_head": why})
        if self.halve_from == 1:
            faults.append(
                "--halve-from 1 would halve the rate before the first update; lower --lr instead"
            )
        faults += filter(None, map(_factor_fault, self.lr_factor))
        if self.schedule == "inverse-sqrt" and not self.warmup:
            faults.append("--schedule inverse-sqrt needs --warmup (Vaswani et al.: 4000)")
        if every is not None and not re.fullmatch(r"[1-9]\d*|(?=.*[1-9])\d+(\.\d+)?m", every):
            faults.append(
                f"--validate-every must be a number of updates (500) or minutes (30m), "
                f"not {every!r}"
            )
        return faults


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig(LoopConfig):
    """Training."""

    data: Annotated[Path, Opt("Prepared folder from nmtflex preprocess.", argument=True)]
    init_from: Annotated[
        Path | None,
        Opt(
            "Run with the same vocabulary whose best weights to begin with wherever name and shape "
            "agree; it may have another attention, say. The other weights begin at random."
        ),
    ] = None
    lr: Annotated[float, Opt("Learning rate at its peak (both papers: 1e-4).", gt=0)] = 1e-3

    @property
    def base(self) -> Path | None:
        """The value of ``--init-from``."""
        return self.init_from
