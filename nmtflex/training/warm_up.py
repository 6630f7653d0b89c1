"""Compiling ahead everything that numba compiles on first use.

What is compiled depends on the functions called and the types of their arguments. So instead of a
list to maintain, tiny models of every kind are trained for a step and translate a line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from nmtflex.attention import UNLIMITED, Limits
from nmtflex.config import (
    AttentionConfig,
    DeviceConfig,
    FlexibleConfig,
    GlobalConfig,
    LocalMConfig,
    LocalPConfig,
    MemoryConfig,
    MochaConfig,
    ModelConfig,
    MonotonicConfig,
    NoneConfig,
    SearchConfig,
)
from nmtflex.corpus.sorting import shuffled_by_length
from nmtflex.decoding.search import beam_search
from nmtflex.decoding.tally import Tally
from nmtflex.decoding.traces import trace_pairs
from nmtflex.model.build import build_model
from nmtflex.model.inference import make_ready
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.ops.waiting import touch
from nmtflex.runs.device import open_device, storage_dtype

MECHANISMS: tuple[AttentionConfig, ...] = (
    GlobalConfig(),
    GlobalConfig(score="general"),
    FlexibleConfig(),
    LocalPConfig(window=2),
    LocalMConfig(window=2),
    MemoryConfig(K=4),
    MonotonicConfig(),
    MochaConfig(chunk=2),
    NoneConfig(),
)
LAYERED = "ssru", "transformer"  # decoders whose attention has heads
LAYERS: dict[str, Any] = {
    "encoder": "transformer",
    "encoder_layers": 1,
    "encoder_heads": 2,
    "decoder_heads": 2,
    "embedding_size": 16,
}
WORDS, LENGTH = 40, 6
SOURCES = [[4, 5, 6, 7, 8, 9], [10, 11, 12]]


class WarmUpStep(NamedTuple):
    """A part of the work."""

    name: str
    run: Callable[[], None]


def warm_up_steps(device: DeviceConfig) -> Iterator[WarmUpStep]:
    """Yield the work in parts: training and translation of each mechanism, and 8-bit products."""
    for attention in MECHANISMS:
        name = f"{attention.kind}, {attention.score}" if hasattr(attention, "score") else None
        for what, run in (("training", _train), ("translation", _translate)):
            yield WarmUpStep(f"{what}: {name or attention.kind}", partial(run, attention, device))
    yield WarmUpStep(
        "training: decoder luong", partial(_train, GlobalConfig(), device, decoder="luong")
    )
    luong = partial(_train, FlexibleConfig(), device, decoder="luong", input_feeding=False)
    yield WarmUpStep("training: flexible, all steps at once", luong)
    for decoder in LAYERED:
        for kind in dict.fromkeys(attention.kind for attention in MECHANISMS):
            for what, run in (("training", _train), ("translation", _translate)):
                work: partial[None] = partial(run, kind, device, decoder=decoder, **LAYERS)
                yield WarmUpStep(f"{what}: {kind}, decoder {decoder}", work)
    yield WarmUpStep("order of a large corpus", _sort)
    yield WarmUpStep("threads on a busy machine", partial(touch, np.zeros(64)))
    yield WarmUpStep("translation in 8 bits", partial(_translate, GlobalConfig(), device, True))
    layers = partial(_translate, "global", device, True, decoder="ssru", **LAYERS)
    yield WarmUpStep("translation in 8 bits: decoder ssru", layers)


def _model(attention: AttentionConfig | str, device: DeviceConfig, **options: Any) -> Seq2Seq:
    sizes = {"embedding_size": 8, "encoder_size": 16, "decoder_size": 16}
    config = ModelConfig.from_flat(attention=attention, dropout=0.1, **{**sizes, **options})
    model = build_model(config, WORDS, WORDS, LENGTH, device.dtype == "bfloat16")
    return model.to(open_device(device), storage_dtype(device))


def _train(attention: AttentionConfig | str, device: DeviceConfig, **options: Any) -> None:
    """Make the gradient of one batch."""
    model = _model(attention, device, **options).train()
    source = torch.tensor([[*ids, *[0] * (LENGTH - len(ids))] for ids in SOURCES])
    lengths = torch.tensor(list(map(len, SOURCES)))
    begin = torch.ones(len(SOURCES), 1, dtype=torch.long)
    target_in, target_out = torch.cat([begin + 1, source], 1), torch.cat([source, begin * 3], 1)
    target_in[1, 4:] = target_out[1, 3:] = 0
    target_out[1, 3] = 3
    place = model.device
    loss = model.loss(
        source.to(place), lengths, target_in.to(place), target_out.to(place), smoothing=0.1
    )
    loss.objective.backward()  # type: ignore[no-untyped-call]


def _sort() -> None:
    """Sort pairs in the way of a corpus of many millions."""
    lengths = np.array([3, 1, 2, 3], np.int32)
    shuffled_by_length(lengths, lengths, np.random.default_rng(1))


def _translate(
    attention: AttentionConfig | str, device: DeviceConfig, int8: bool = False, **options: Any
) -> None:
    """Translate two sentences greedily and with a beam, and trace one."""
    model = _model(attention, device, **options).eval()
    make_ready(model, int8)
    limited = model.limited(Limits(0.5) if model.gated else UNLIMITED)
    for beam in (1, 3):
        search = SearchConfig(beam=beam, max_length=4)
        beam_search([limited], SOURCES, search)
        found = beam_search([limited], SOURCES, search, Tally(), 1)
    trace_pairs(limited, [(SOURCES[0], found[0][0].ids)], 1)
