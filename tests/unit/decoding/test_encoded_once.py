"""Sentences are encoded once: for the search and for all that looks at what it found."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nmtflex.attention import ATTENTIONS
from nmtflex.config import GlobalConfig, MemoryConfig, ModelConfig, SearchConfig
from nmtflex.decoding.ensemble import encode
from nmtflex.decoding.links import mean_weights
from nmtflex.decoding.search import beam_search
from nmtflex.decoding.traces import Origin, trace_pairs
from nmtflex.decoding.translator import Translator
from nmtflex.model.build import build_model
from nmtflex.model.inference import make_ready
from nmtflex.text.glossary import Glossary
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.tokenizers import build_tokenizer
from nmtflex.text.vocabulary import Vocabulary

SOURCES = [[4, 5, 6, 7, 8], [9, 10], [11], [12, 13, 14, 15, 16, 17, 18]]
ROWS = [3, 1, 3, 0, 1]  # of pairs: in no order, twice, and not all
TARGETS = [[4, 9, 5], [], [6], [8, 7, 6, 5, 4, 9], [7, 7]]
PAIRS = [(SOURCES[row], target) for row, target in zip(ROWS, TARGETS, strict=True)]


def build(attention, decoder: str = "ssru", seed: int = 3, ready: bool = False):
    torch.manual_seed(seed)
    options = {"embedding_size": 16, "encoder_size": 16, "decoder": decoder}
    if decoder != "luong":
        options |= {"encoder": "transformer", "decoder_layers": 2, "decoder_heads": 4}
    config = ModelConfig.from_flat(**options, attention=attention)
    model = build_model(config, 40, 40, 10).eval()
    if ready:
        make_ready(model)
    return model if ready else model.double()


def same(found, expected) -> bool:
    if found is None or expected is None:
        return found is expected
    return found.shape == expected.shape and np.allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("decoder", ["ssru", "transformer", "luong"])
@pytest.mark.parametrize("attention", [kind() for kind in ATTENTIONS], ids=lambda one: one.kind)
@pytest.mark.parametrize("ready", [False, True], ids=["plain", "ready"])
def test_looking_again_needs_no_encoder(attention, decoder, ready):
    if decoder == "luong" and ready:
        pytest.skip("it is not laid out anew")
    model = build(attention, decoder, ready=ready)
    expected = trace_pairs(model, PAIRS)
    encoded = encode([model], SOURCES, traced=True)
    search = SearchConfig(beam=3, max_length=9)
    assert beam_search([model], encoded, search) == beam_search([model], SOURCES, search)
    for _ in range(2):  # a search and forced decoding leave no traces of their own
        found = trace_pairs(model, PAIRS, 2, Origin(encoded, ROWS))
        for one, other in zip(found, expected, strict=True):
            for part, own in zip(one, other, strict=True):
                assert same(part, own)


def test_of_an_ensemble_each_model_has_its_own():
    models = [build(GlobalConfig(), seed=seed) for seed in (1, 2)] + [build(MemoryConfig(K=3))]
    expected = mean_weights(models, PAIRS)
    origin = Origin(encode(models, SOURCES, traced=True), ROWS)
    found = mean_weights(models, PAIRS, 2, None, origin)
    assert all(same(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("asked", [
    {"align": True}, {"trace": True}, {"glossary": Glossary({"a": "b"}), "trace": True},
    {"prefixes": ["c", "", "b"], "align": True},
], ids="-".join)  # fmt: skip
def test_a_translator_encodes_once(asked, monkeypatch):
    side = SidePipeline("xx", build_tokenizer({"name": "none"}), None, Vocabulary("abcd", [1] * 4))
    config = ModelConfig.from_flat(embedding_size=8, encoder_size=8, decoder_size=8)
    model = build_model(config, 8, 8, 10).double().eval()
    seen = []
    original = model.encode

    def spied(source, lengths, *, traced):
        seen.append(len(source))
        return original(source, lengths, traced=traced)

    monkeypatch.setattr(model, "encode", spied)
    search = SearchConfig(beam=2, max_length=5)
    translator = Translator([model], TextPipeline(side, side), search)
    translator.n_best(["a b", "", "c d a"], 2, **asked)
    assert sum(seen) == 2  # an empty line is not encoded
