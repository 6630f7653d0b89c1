"""What is kept of a source: a fixed size where the paper says so, and more only for traces."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from test_heads_counted import MEAN, SOURCES, build
from test_translator import PIPELINE

from nmtflex.attention import Limits
from nmtflex.bench.random_model import bytes_in
from nmtflex.config import AbcConfig, GlobalConfig, MemoryConfig, RfaConfig, SearchConfig
from nmtflex.decoding.ensemble import encode
from nmtflex.decoding.tally import Tally
from nmtflex.decoding.traces import Origin, trace_pairs
from nmtflex.decoding.translator import Translator
from nmtflex.model.inference import make_ready

FIXED = {
    "memory": MemoryConfig(K=5),
    "memory-sigmoid": MemoryConfig(K=5, decoder_scoring="sigmoid"),
    "abc": AbcConfig(K=5),
    "rfa": RfaConfig(features=5),
    "rfa-positive": RfaConfig(features=5, feature_map="positive"),
}
DECODERS = ["luong", "ssru", "transformer"]


@pytest.fixture(params=FIXED)
def fixed(request):
    return FIXED[request.param]


def kept(model, length: int, traced: bool) -> int:
    source = torch.ones(1, length, dtype=torch.long)
    with torch.inference_mode():
        memory, _ = model.limited(Limits()).encode(source, torch.tensor([length]), traced=traced)
    return bytes_in(memory)


@pytest.mark.parametrize("ready", [False, True], ids=["as-trained", "ready"])
@pytest.mark.parametrize("decoder", DECODERS)
def test_a_long_source_takes_no_more_than_a_short_one(fixed, decoder, ready):
    model = build(fixed, decoder)
    if ready:
        make_ready(model.float(), int8=False)
    short, long = (kept(model, length, traced=False) for length in (2, 40))
    assert short == long
    weighed = [kept(model, length, traced=True) for length in (2, 40)]
    assert weighed[0] > short
    # The weights of 38 more positions.
    assert weighed[1] - weighed[0] == 19 * (weighed[0] - short)


@pytest.mark.parametrize("traced", [False, True])
def test_traces_are_the_same_whatever_a_search_has_kept(fixed, traced):
    model = build(fixed)
    pairs = [(source, [5, 4]) for source in SOURCES if source]
    encoded = encode([model.limited(Limits())], [source for source, _ in pairs], traced)
    origin = Origin(encoded, range(len(pairs)))
    expected = trace_pairs(model.limited(Limits()), pairs)
    found = trace_pairs(model.limited(Limits()), pairs, origin=origin)
    for one, other, (source, target) in zip(expected, found, pairs, strict=True):
        assert other.weights.shape == (len(target) + 1, len(source))
        np.testing.assert_array_equal(one.weights, other.weights)
        np.testing.assert_array_equal(one.computed, other.computed)


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_search_counts_without_what_it_has_not_kept(fixed, decoder):
    model = build(fixed, decoder).float()
    make_ready(model, int8=False)
    tally, search = Tally(), SearchConfig(beam=2, max_length=9)
    Translator([model.limited(Limits())], PIPELINE, search).translate_ids(SOURCES, tally)
    slots = 10 if getattr(fixed, "feature_map", None) == "fourier" else 5
    assert tally.cps == slots
    assert tally.encoding == slots * MEAN


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("search", "asked", "traced"),
    [
        (SearchConfig(), {}, False),
        (SearchConfig(), {"trace": True}, True),
        (SearchConfig(), {"align": True}, True),
        (SearchConfig(replace_unk=True), {}, True),
    ],
    ids=["nothing", "trace", "align", "replace"],
)
def test_a_source_is_encoded_once(fixed, monkeypatch, search, asked, traced):
    model = build(fixed).limited(Limits())
    found, plain = [], model.encode

    def spied(source, lengths, *, traced=True):
        found.append(traced)
        return plain(source, lengths, traced=traced)

    monkeypatch.setattr(model, "encode", spied)
    Translator([model], PIPELINE, search).n_best(["a b", "b a"], 1, **asked)
    assert found == [traced]


def test_global_attention_keeps_the_same_for_traces():
    model = build(GlobalConfig(score="dot"))
    assert kept(model, 7, traced=False) == kept(model, 7, traced=True)
