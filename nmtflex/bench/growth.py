"""How time and memory grow with the length, beside the orders that theory gives.

A lecture (E. Gultepe, SIUE CS 490/590, spring 2020, lecture 16, "Attention", adapted from R. Grosse
and J. Ba, "Computational Cost and Parallelism") states for sequences of t tokens, d layers and k
units a layer::

                 training        training memory     decoding        decoding memory
    RNN          t k^2 d         t k d               t k^2 d         k d
    RNN + attn   t^2 k^2 d       t^2 k d             t^2 k^2 d       t k d
    transformer  t^2 k d         t k d               t^2 k d         t k d

Here operations are per target token, which takes one t from them. Decoding memory has two parts:
what the decoder keeps of the target, per hypothesis, and what it reads of the source, per sentence.
The rows of a model:

- RNN + attn: a recurrent decoder that reads the whole source at every step.
- transformer: otherwise, if self-attention or attention reads whole sequences.
- RNN: the others, whose attention reads a window, K slots (Britz, Guan and Luong, 2017) or F
  features. Flexible attention under a threshold is one of these in decoding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from nmtflex.bench.synthetic import SyntheticRow
from nmtflex.config import (
    FlexibleConfig,
    GlobalConfig,
    LayeredDecoderConfig,
    ModelConfig,
    ScanningConfig,
    TransformerDecoderConfig,
    TransformerEncoderConfig,
)
from nmtflex.files import csv_text

RNN, RNN_ATTENTION, TRANSFORMER = "RNN", "RNN+attn", "transformer"
OPERATIONS = {RNN: "k² d", RNN_ATTENTION: "t k² d", TRANSFORMER: "t k d"}  # per target token
TRAINING_MEMORY = {RNN: "t k d", RNN_ATTENTION: "t² k d", TRANSFORMER: "t k d"}


class Quantity(NamedTuple):
    """What is measured over lengths."""

    name: str  # with its unit
    column: str  # of the CSV file
    value: Callable[[SyntheticRow], float | None]
    order: Callable[[ModelConfig, float], str]  # of a model, and tau of its decoding


class Growth(NamedTuple):
    """A quantity of a model over lengths."""

    backbone: str
    attention: str
    quantity: Quantity
    lengths: list[int]
    values: list[float]
    order: str  # that theory gives

    @property
    def power(self) -> float | None:
        """Return the p for which the value grows as t^p between the two longest lengths."""
        if len(self.lengths) < 2 or min(self.values[-2:]) <= 0:
            return None
        grown = math.log(self.values[-1] / self.values[-2])
        return grown / math.log(self.lengths[-1] / self.lengths[-2])

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return {
            "backbone": self.backbone,
            "attention": self.attention,
            "quantity": self.quantity.column,
            "order": self.order,
            "power": self.power,
        }


def reads_all(model: ModelConfig, tau: float = math.inf) -> bool:
    """Return whether attention reads the whole source at every step."""
    if isinstance(model.attention, FlexibleConfig):
        return tau == math.inf
    return isinstance(model.attention, GlobalConfig)


def table_row(model: ModelConfig, attends: bool, encodes: bool) -> str:
    """Return the row of the lecture's table.

    Args:
        model: Encoder and decoder.
        attends: Whether attention reads the whole source.
        encodes: Whether the encoder's part counts.
    """
    if attends and not isinstance(model.decoder, LayeredDecoderConfig):
        return RNN_ATTENTION
    self_attends = isinstance(model.decoder, TransformerDecoderConfig) or (
        encodes and isinstance(model.encoder, TransformerEncoderConfig)
    )
    return TRANSFORMER if attends or self_attends else RNN


def training_row(model: ModelConfig) -> str:
    """Return the row of a training, which computes all positions that a threshold or scan saves."""
    attends = reads_all(model) or isinstance(model.attention, ScanningConfig)
    return table_row(model, attends, encodes=True)


QUANTITIES = (
    Quantity(
        "training, ms per target token",
        "training_milliseconds_per_target_token",
        lambda row: row.training and row.training.median,
        lambda model, _: OPERATIONS[training_row(model)],
    ),
    Quantity(
        "training, bytes per sentence",
        "training_bytes_per_sentence",
        lambda row: row.bytes.training,
        lambda model, _: TRAINING_MEMORY[training_row(model)],
    ),
    Quantity(
        "decoding, ms per target token",
        "decoding_milliseconds_per_target_token",
        lambda row: row.milliseconds.median,
        lambda model, tau: OPERATIONS[table_row(model, reads_all(model, tau), encodes=False)],
    ),
    Quantity(
        "decoder state, bytes per hypothesis",
        "state_bytes_per_hypothesis",
        lambda row: row.bytes.state,
        lambda model, _: "t k d" if isinstance(model.decoder, TransformerDecoderConfig) else "k d",
    ),
    Quantity(
        "source memory, bytes per sentence",
        "memory_bytes_per_sentence",
        lambda row: row.bytes.memory,
        lambda model, _: model.attention.source_memory,
    ),
)


def growths(rows: Sequence[SyntheticRow], tau: float) -> list[Growth]:
    """Return each quantity of each model over the lengths.

    Args:
        rows: In the order of ``bench_synthetic``.
        tau: Of flexible attention in decoding.
    """
    found = []
    for _, several in groupby(rows, key=lambda row: (row.backbone, row.attention)):
        own = list(several)
        first = own[0]
        for quantity in QUANTITIES:
            values = [quantity.value(row) for row in own]
            measured = [value for value in values if value is not None]
            if len(measured) == len(own):
                order = quantity.order(first.model, tau)
                lengths = [row.length for row in own]
                names = first.backbone, first.attention
                found.append(Growth(*names, quantity, lengths, measured, order))
    return found


def as_csv(rows: Sequence[SyntheticRow]) -> str:
    """Return one line per model and length with what was measured; medians, unrounded."""
    measured = [one for one in QUANTITIES if one.value(rows[0]) is not None]
    columns = ["backbone", "attention", "length", *(quantity.column for quantity in measured)]
    return csv_text(
        columns,
        (
            [row.backbone, row.attention, row.length, *(one.value(row) for one in measured)]
            for row in rows
        ),
    )
