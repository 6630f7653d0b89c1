"""The progress of a training: all that resuming needs besides tensors."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

LIMIT = 2**63  # counters are smaller
OPTIONAL = ("best_score", "best_perplexity")
SIGNED = ("validated_update", "best_score", "window_loss")


@dataclass(slots=True)
class Progress:
    """Counters of a training; plain numbers, kept with each checkpoint."""

    rate: float  # learning rate now, before the schedule's factor
    update: int = 0  # optimiser steps, including skipped ones
    epoch: int = 1  # passes started
    position: int = 0  # batches done in this epoch
    seconds: float = 0.0  # in training and validation, over all starts
    target_tokens: int = 0  # including the end of sentence
    validation_seconds: float = 0.0  # of those, in validation
    validated_update: int = 0  # the last validation; -1 if the initial weights must be validated
    validated_seconds: float = 0.0
    saved_seconds: float = 0.0  # the last checkpoint
    best_score: float | None = None  # BLEU, or minus perplexity
    best_perplexity: float | None = None  # of the same validation
    best_update: int = 0
    validations_since_best: int = 0
    metric_rows: int = 0  # of metrics.csv
    window_loss: float = 0.0  # sums since the last row of metrics.csv
    window_cross_entropy: float = 0.0
    window_tokens: int = 0
    window_gate: float = 0.0  # sum over sentences of their mean gate
    window_sentences: int = 0
    window_alignment: float = 0.0
    window_linked: int = 0  # target tokens with a link
    skipped: int = 0  # updates without a finite loss and gradient; they changed no weight
    skipped_in_row: int = 0  # of those, the last ones
    batches_split: int = 0  # halvings of batches that did not fit into memory
    pairs_left_out: int = 0  # too large even alone
    factor: float = 1.0  # the schedule's, in the last update

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Progress:
        """Rebuild from ``to_dict``; unknown, missing or invalid values raise ``TypeError``."""
        found = cls(**values)
        for field in dataclasses.fields(cls):
            value = getattr(found, field.name)
            if field.name in OPTIONAL and value is None:
                continue
            least = -math.inf if field.name in SIGNED else 0
            if field.type == "int":
                sound = type(value) is int and least <= value < LIMIT
            else:
                sound = type(value) is float and least <= value
            if not sound:
                raise TypeError(f"{field.name!r} is {value!r}, which is out of range")
        return found
