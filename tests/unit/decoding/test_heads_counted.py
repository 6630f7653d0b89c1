"""CPS and traces of decoders with several heads and layers, against each head looked at alone."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from test_translator import PIPELINE

from nmtflex.attention import Limits
from nmtflex.attention.heads import Heads
from nmtflex.config import (
    AttentionConfig,
    FlexibleConfig,
    GlobalConfig,
    LocalMConfig,
    MemoryConfig,
    ModelConfig,
    NoneConfig,
    SearchConfig,
)
from nmtflex.decoding.tally import Tally
from nmtflex.decoding.traces import SentenceTrace, trace_pairs
from nmtflex.decoding.translator import Translator
from nmtflex.model.build import build_model
from nmtflex.model.seq2seq import Seq2Seq

HEADS, LAYERS, EACH = 2, 3, 6  # heads times layers
TAU = 0.4
DRAW = random.Random(5)
LENGTHS = [7, 0, 1, 11, 3]
SOURCES = [[DRAW.randrange(1, 30) for _ in range(length)] for length in LENGTHS]
MEAN = sum(LENGTHS) / 4  # of the sources that are not empty
PAIRS = [(source, [DRAW.randrange(4, 30) for _ in range(4)]) for source in SOURCES if source]
WHOLE = ("window_start", "window_stop", "alpha", "beta")


def build(attention: AttentionConfig, decoder: str = "ssru") -> Seq2Seq:
    torch.manual_seed(2)
    layers = {}
    if decoder in ("ssru", "transformer"):
        layers = {"decoder_heads": HEADS, "decoder_layers": LAYERS}
    config = ModelConfig.from_flat(
        attention=attention,
        decoder=decoder,
        embedding_size=8,
        encoder_size=4,
        decoder_size=8,
        **layers,
    )
    model = build_model(config, 30, 30, 12).double().eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.7)
    return model


def tally_of(models, beam: int = 3) -> Tally:
    tally, search = Tally(), SearchConfig(beam=beam, max_length=9)
    Translator(models, PIPELINE, search).translate_ids(SOURCES, tally)
    return tally


@pytest.mark.parametrize("decoder", ["ssru", "transformer"])
@pytest.mark.parametrize(
    ("attention", "cps", "encoding"),
    [
        (GlobalConfig(score="dot"), MEAN, 0.0),
        (FlexibleConfig(score="dot"), MEAN, 0.0),
        (LocalMConfig(window=12), MEAN, 0.0),
        (MemoryConfig(K=5), 5.0, 5 * MEAN),
        (NoneConfig(), 0.0, 0.0),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_the_scores_of_all_heads_are_divided_by_their_number(decoder, attention, cps, encoding):
    tally = tally_of([build(attention, decoder)])
    assert tally.cps == pytest.approx(cps, rel=1e-12)
    assert tally.total == pytest.approx(EACH * cps, rel=1e-12)
    assert tally.encoding == pytest.approx(encoding, rel=1e-12)


def test_one_head_has_one_count():
    tally = tally_of([build(FlexibleConfig(), "bahdanau").limited(Limits(TAU))])
    assert tally.total == tally.cps < MEAN


def test_an_ensemble_adds_what_each_model_computes_a_head():
    layered, recurrent = build(MemoryConfig(K=5)), build(GlobalConfig(), "luong")
    tally = tally_of([layered, recurrent])
    assert tally.cps == pytest.approx(5 + MEAN, rel=1e-12)
    assert tally.total == pytest.approx(5 * EACH + MEAN, rel=1e-12)
    assert tally.encoding == pytest.approx(5 * MEAN, rel=1e-12)


def test_choosing_a_head_does_not_change_the_count():
    model = build(FlexibleConfig())
    found = [tally_of([model.limited(Limits(TAU, *shown))]) for shown in ((), (1, 0))]
    assert found[0].to_lists() == found[1].to_lists()
    assert found[0].cps < MEAN


def of_each_head(model: Seq2Seq, source: list[int], target: list[int]) -> list[list[dict]]:
    """Return by step and layer what all heads saw, fields of shape [heads, ..]."""
    seen: list[dict] = []
    hooks = [
        module.register_forward_hook(lambda *call: seen.append(call[2].trace._asdict()))
        for module in model.modules()
        if isinstance(module, Heads)
    ]
    try:
        trace_pairs(model.limited(Limits(TAU)) if model.gated else model, [(source, target)])
    finally:
        for hook in hooks:
            hook.remove()
    rows = [{name: x if x is None else x[0].numpy() for name, x in one.items()} for one in seen]
    return [rows[first : first + LAYERS] for first in range(0, len(rows), LAYERS)]


MECHANISMS = (
    GlobalConfig(score="dot"),
    FlexibleConfig(),
    LocalMConfig(window=2),
    AttentionConfig.variants()["local-p"](window=2),
    MemoryConfig(K=3),
)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shown", [(None, None), (1, None), (None, 1), (2, 0)])
@pytest.mark.parametrize("attention", MECHANISMS, ids=lambda one: one.kind)
def test_a_trace_is_a_head_s_or_the_mean(attention, shown):
    model = build(attention)
    layer, head = shown
    layers = range(LAYERS) if layer is None else [layer]
    heads = range(HEADS) if head is None else [head]
    limits = Limits(TAU if model.gated else float("inf"), layer, head)
    for (source, target), trace in zip(
        PAIRS, trace_pairs(model.limited(limits), PAIRS), strict=True
    ):
        steps = of_each_head(model, source, target)
        assert len(steps) == len(target) + 1
        for name in SentenceTrace._fields:
            found = getattr(trace, name)
            several = len(layers) * len(heads) > 1
            if steps[0][0][name] is None or (several and name in WHOLE):
                assert found is None, name
                continue
            each = [[step[place][name][n] for place in layers for n in heads] for step in steps]
            expected = np.array([np.mean(one, axis=0) for one in each])
            if name == "alpha":  # of the sentence, the same in each step
                expected = expected[0]
            assert np.allclose(found, expected, rtol=0, atol=1e-12), name


def test_a_chosen_head_computes_its_windows_and_they_are_whole_numbers():
    model = build(FlexibleConfig()).limited(Limits(TAU, 1, 0))
    for trace in trace_pairs(model, PAIRS):
        assert (trace.window_stop - trace.window_start == trace.computed).all()
        assert trace.computed.dtype.kind == "i"
        assert all(isinstance(value, int) for value in trace.to_dict()["computed"])


def test_greedy_search_costs_what_the_mean_s_traces_say():
    model = build(FlexibleConfig(), "transformer").limited(Limits(TAU))
    search, tally = SearchConfig(beam=1, max_length=9), Tally()
    found = Translator([model], PIPELINE, search).translate_ids(SOURCES, tally)
    pairs = [(source, best.ids) for source, [best] in zip(SOURCES, found, strict=True)]
    means = [trace.computed.mean() for trace in trace_pairs(model, pairs) if trace]
    assert tally.cps == pytest.approx(sum(means) / len(means), rel=1e-12)
