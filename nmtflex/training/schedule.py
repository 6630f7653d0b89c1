"""The learning rate of the next update."""

from __future__ import annotations

from dataclasses import dataclass

from nmtflex.training.progress import Progress


@dataclass(frozen=True, slots=True)
class Schedule:
    """Decides the learning rate. All its state is in the progress: the rate and the counts.

    Args:
        halve_from: The rate is halved at the start of this epoch and of each later one; 0: never.
        plateau: The rate is halved after this many validations without a new best; 0: never.
    """

    halve_from: int = 0
    plateau: int = 0

    def start_epoch(self, progress: Progress) -> None:
        """Adapt the rate to the epoch that begins, which is already counted."""
        if self.halve_from and progress.epoch >= self.halve_from:
            progress.rate /= 2

    def end_validation(self, progress: Progress) -> None:
        """Adapt the rate to a validation, which is already counted."""
        waited = progress.validations_since_best
        if self.plateau and waited and waited % self.plateau == 0:
            progress.rate /= 2
