"""How far a training has come: all that resuming needs beside tensors."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

LIMIT = 2**63  # nothing counts so far
OPTIONAL = ("best_score", "best_perplexity")
SIGNED = ("validated_update", "best_score", "window_loss")


@dataclass(slots=True)
class Progress:
    """Counters of a training; plain numbers, kept with each checkpoint."""

    rate: float  # learning rate now
    update: int = 0  # optimiser steps, those skipped counted
    epoch: int = 1  # passes begun
    position: int = 0  # batches done in this epoch
    seconds: float = 0.0  # in training and validation, over all sittings
    target_tokens: int = 0  # end-of-sentence counted
    validation_seconds: float = 0.0  # of those, in validation
    validated_update: int = 0  # the last validation; -1 where the start is to be validated
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
    skipped: int = 0  # updates without a finite loss and gradient; they changed no weight
    skipped_in_row: int = 0  # of those, the last ones
    batches_split: int = 0  # halvings of batches that memory did not hold
    pairs_left_out: int = 0  # that it did not hold even alone

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Progress:
        """Rebuild from ``to_dict``; what is unknown, missing or no number raises ``TypeError``."""
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
                raise TypeError(f"{field.name!r} is {value!r}, which no training counts to")
        return found
