"""The learning rate of an update: a base rate, which halvings change, times a factor."""

from __future__ import annotations

import math
from dataclasses import dataclass

from nmtflex.config import LoopConfig
from nmtflex.corpus.batches import Batches
from nmtflex.errors import OptionError
from nmtflex.training.progress import Progress


@dataclass(frozen=True, slots=True)
class Schedule:
    """Decides the learning rate. All its state is in the progress: the rate and the counts.

    Args:
        kind: What the rate does after the warm-up.
        warmup: Updates in which it rises linearly.
        total: Updates of the whole training.
        halve_from: The rate is halved at the start of this epoch and of each later one; 0: never.
        plateau: The rate is halved after this many validations without a new best; 0: never.
    """

    kind: str = "constant"
    warmup: int = 0
    total: int = 0
    halve_from: int = 0
    plateau: int = 0

    def factor(self, update: int) -> float:
        """Return what the base rate is multiplied by in an update, counted from 1.

        With W updates of warm-up it is ``update / W``, and 1 in update W. Then inverse-sqrt is
        ``sqrt(W / update)``, so that a base rate of ``(model size x W) ** -0.5`` gives eq. 3 of
        Vaswani et al. (2017, 1706.03762). Linear and cosine (Loshchilov & Hutter, 1608.03983,
        eq. 5, one cycle) would reach 0 in the update after the last one.
        """
        if update < self.warmup:
            return update / self.warmup
        if self.kind == "inverse-sqrt":
            return math.sqrt(self.warmup / update)
        peak = max(1, self.warmup)
        left = (self.total + 1 - min(update, self.total)) / max(1, self.total + 1 - peak)
        curves = {"linear": left, "cosine": (1 - math.cos(math.pi * left)) / 2}
        return curves.get(self.kind, 1.0)

    def start_epoch(self, progress: Progress) -> None:
        """Adapt the rate to the epoch that begins, which is already counted."""
        if self.halve_from and progress.epoch >= self.halve_from:
            progress.rate /= 2

    def end_validation(self, progress: Progress) -> None:
        """Adapt the rate to a validation, which is already counted."""
        waited = progress.validations_since_best
        if self.plateau and waited and waited % self.plateau == 0:
            progress.rate /= 2


def make_schedule(config: LoopConfig, batches: Batches) -> Schedule:
    """Make the schedule of a training.

    Args:
        config: The loop's options.
        batches: Of the training data.

    Raises:
        OptionError: The warm-up is longer than the training; names both.
    """
    total = config.updates or (config.last_epoch or 0) * math.ceil(
        batches.count() / config.accumulate
    )
    if config.warmup > total:
        raise OptionError(
            f"--warmup {config.warmup} is longer than the whole training, {total:,} updates; lower "
            f"it, or raise --epochs or --updates"
        )
    return Schedule(config.schedule, config.warmup, total, config.halve_from, config.patient)
