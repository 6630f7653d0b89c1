"""What the whole model is compared on: its options in pairs, its weights, a ragged batch."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from oracle.model import BOS, EOS, Oracle
from torch import nn

from nmtflex.config import (
    AbcConfig,
    FlexibleConfig,
    GlobalConfig,
    LocalMConfig,
    LocalPConfig,
    MemoryConfig,
    MochaConfig,
    ModelConfig,
    MonotonicConfig,
    NoneConfig,
    RfaConfig,
)
from nmtflex.model.build import build_model
from nmtflex.model.seq2seq import Seq2Seq

SCORES = ("additive", "general", "dot")
KINDS = ("softmax", "sigmoid")
LONGEST = 4  # of the training data: the batch has longer sources, which position encodings clamp
SOURCES = [[5, 6, 7, 8, 4, 9], [8], [10, 5, 1], [4, 9, 6, 6, 7]]  # unknown words too
TARGETS = [[7, 4], [5, 6, 9, 9, 8], [], [11]]

ATTENTION: list[tuple[Any, float]] = [
    (NoneConfig(), math.inf),
    *((GlobalConfig(score=score), math.inf) for score in SCORES),
    *((LocalMConfig(score=score, window=1), math.inf) for score in SCORES),
    *((LocalPConfig(score=score, window=2), math.inf) for score in SCORES),
    *(
        (FlexibleConfig(score=score, gate_feedback=feedback), tau)
        for score in SCORES
        for feedback in (True, False)
        for tau in (math.inf, 0.3)
    ),
    *((FlexibleConfig(score=score, remainder=True), 0.05) for score in SCORES),
    *(
        (
            MemoryConfig(K=3, encoder_scoring=one, decoder_scoring=other, position_encoding=place),
            math.inf,
        )
        for one in KINDS
        for other in KINDS
        for place in (True, False)
    ),
    *((AbcConfig(K=3, score=score), math.inf) for score in SCORES),
    (RfaConfig(features=4, feature_map="fourier", score="general"), math.inf),
    (RfaConfig(features=4, feature_map="positive", score="dot"), math.inf),
    (MonotonicConfig(), math.inf),
    (MochaConfig(chunk=2), math.inf),
]
DECODERS = [
    {"decoder": "bahdanau"},
    {"decoder": "bahdanau", "deep_output": True},
    *(
        {"decoder": "luong", "input_feeding": feeding, "attentional": attentional}
        for feeding in (True, False)
        for attentional in (True, False)
    ),
]
# What surrounds attention and decoder: cell, encoder layers, decoder layers, bottleneck, tying.
AROUND = list(
    itertools.product(("lstm", "gru"), (1, 2), (1, 2), (False, True), ("none", "target", "all"))
)

LAYERED = [  # options of decoders of residual layers; 6 units
    {"decoder_layers": 1, "decoder_heads": 1, "decoder_ffn": 0},
    {"decoder_layers": 2, "decoder_heads": 2, "decoder_ffn": 7, "pre_norm": True},
    {"decoder_layers": 2, "decoder_heads": 3, "decoder_ffn": 7, "tie_embeddings": "all"},
    {"decoder_layers": 2, "decoder_heads": 2, "pre_norm": True, "attending_layers": "2"},
    {"decoder_layers": 3, "decoder_heads": 1, "attending_layers": "1,3", "bottleneck": 5},
]
TRANSFORMER = {"encoder": "transformer", "encoder_size": 6, "encoder_heads": 3, "encoder_ffn": 7}
ENCODERS = [
    TRANSFORMER | {"encoder_layers": 1},
    {"encoder": "recurrent", "encoder_size": 4, "cell": "lstm"},
    TRANSFORMER | {"encoder_layers": 2},
]


class Case(NamedTuple):
    """A model's options, the threshold it decodes with, and a name."""

    config: ModelConfig
    tau: float
    name: str


def cases() -> Iterator[Case]:
    """Every mechanism in every decoder, each with the options that it was seen with least."""
    seen: Counter[frozenset[Any]] = Counter()

    def pairs(mechanism: int, decoder: int, around: tuple[Any, ...]) -> list[frozenset[Any]]:
        chosen = [(-2, mechanism), (-1, decoder), *enumerate(around)]
        return list(map(frozenset, itertools.combinations(chosen, 2)))

    for (m, (attention, tau)), (d, decoder) in itertools.product(
        enumerate(ATTENTION), enumerate(DECODERS)
    ):
        around = max(AROUND, key=lambda options: sum(0.1 ** seen[p] for p in pairs(m, d, options)))
        seen.update(pairs(m, d, around))
        config = model_config(attention, decoder, *around)
        yield Case(config, tau, "-".join(map(str, (m, attention.kind, d, *around))))


def layered_cases() -> Iterator[Case]:
    """Every mechanism in both decoders of layers, each with other options around it."""
    kinds = enumerate(("ssru", "transformer"))
    for (m, (attention, tau)), (k, kind) in itertools.product(enumerate(ATTENTION), kinds):
        shape, encoder = (2 * m + k) % len(LAYERED), (m + k) % len(ENCODERS)
        options = {
            "attention": attention,
            "decoder": kind,
            "embedding_size": 6,
            "decoder_size": 6,
            "attention_size": 12 if attention.has_hidden_units else 0,
            **LAYERED[shape],
            **ENCODERS[encoder],
        }
        name = "-".join(map(str, (m, attention.kind, kind, shape, options["encoder"], encoder)))
        yield Case(ModelConfig.from_flat(**options), tau, name)


def mixed_cases() -> Iterator[Case]:
    """Recurrent decoders over the transformer encoder."""
    chosen = [GlobalConfig(score="general"), FlexibleConfig(), NoneConfig()]
    for (d, decoder), attention in itertools.product(enumerate(DECODERS), chosen):
        sizes = {"embedding_size": 6, "decoder_size": 5, "cell": ("lstm", "gru")[d % 2]}
        config = ModelConfig.from_flat(attention=attention, **decoder, **sizes, **ENCODERS[2])
        yield Case(config, math.inf, f"transformer-{attention.kind}-{d}")


def model_config(
    attention: Any,
    decoder: dict[str, Any],
    cell: str,
    encoder_layers: int,
    decoder_layers: int,
    bottleneck: bool,
    tie: str,
) -> ModelConfig:
    """All widths differ, but where the options ask for equal ones."""
    size = 8 if getattr(attention, "score", None) == "dot" else 5
    context = 0 if attention.kind == "none" else 8
    embedding = 6
    if tie != "none" and not bottleneck:
        embedding = size if decoder.get("attentional", True) else size + context
    options = {
        "attention": attention,
        **decoder,
        "cell": cell,
        "embedding_size": embedding,
        "encoder_size": 4,
        "decoder_size": size,
        "attention_size": 7 if attention.has_hidden_units else 0,
        "encoder_layers": encoder_layers,
        "decoder_layers": decoder_layers,
        "bottleneck": 6 if bottleneck else 0,
        "tie_embeddings": tie,
    }
    return ModelConfig.from_flat(**options)


def build(config: ModelConfig, tau: float = math.inf) -> tuple[Seq2Seq, Oracle]:
    """Both models, with weights large enough to make choices; the oracle is under ``tau``."""
    torch.manual_seed(12)
    sizes = (13, 13) if config.tie_embeddings == "all" else (11, 13)
    model = build_model(config, *sizes, LONGEST).double().eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.7)
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.weight.data += 1  # as it starts
    arrays = {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()}
    return model, Oracle(config, arrays, LONGEST, tau)


def pad(rows: list[list[int]]) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows])


def batch() -> tuple[torch.Tensor, ...]:
    return (
        pad(SOURCES),
        torch.tensor(list(map(len, SOURCES))),
        pad([[BOS, *target] for target in TARGETS]),
        pad([[*target, EOS] for target in TARGETS]),
    )
