"""A search whose steps need no Python finds what the search step by step finds."""

from __future__ import annotations

import math

import pytest
import torch

from nmtflex.attention import Limits
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
    SearchConfig,
)
from nmtflex.decoding.search import beam_search
from nmtflex.decoding.tally import Tally
from nmtflex.errors import RunError
from nmtflex.model import fused_search, inference
from nmtflex.model.build import build_model
from nmtflex.model.inference import make_ready
from nmtflex.ops import threads
from nmtflex.text.vocabulary import EOS_ID

DOT = GlobalConfig(score="dot")
INSIDE = [
    DOT, NoneConfig(), FlexibleConfig(score="dot", sigma=0.7), LocalMConfig(score="dot", window=1),
    LocalPConfig(score="dot", window=2), MemoryConfig(K=3), AbcConfig(score="dot", K=3),
    RfaConfig(features=4), RfaConfig(features=5, feature_map="positive", score="dot"),
    MonotonicConfig(), MochaConfig(chunk=1), MochaConfig(chunk=3), GlobalConfig(score="general"),
]  # fmt: skip
SOURCES = [[4, 5, 6, 7, 8], [9, 10], [11], [12, 13, 14, 15, 16, 17, 18], [5, 4]]


def build(**options):
    """Return a random model that searches in one go."""
    model = random_model(**options)
    assert model.fused_search is not None
    return model


def random_model(seed=3, end=0.0, int8=False, **options):
    """Return a random model; ``end`` is added to the logit of the end of a sentence."""
    torch.manual_seed(seed)
    sizes = {"embedding_size": 16, "encoder_size": 16, "encoder_ffn": 24, "decoder_ffn": 24}
    kinds = {"encoder": "transformer", "decoder": "ssru", "encoder_layers": 2, "decoder_layers": 2}
    heads = {"encoder_heads": 2, "decoder_heads": 4}
    config = ModelConfig.from_flat(**(sizes | kinds | heads | {"attention": DOT} | options))
    model = build_model(config, 40, 40, 10).eval()
    with torch.no_grad():
        model.output.projection.bias[EOS_ID] += end
    make_ready(model, int8)
    return model


def both(model, search, view=None, **options):
    """Return what the search in one go finds, and what the one step by step finds."""
    models = [model if view is None else view]
    whole = beam_search(models, SOURCES, search, **options)
    kept, model.fused_search = model.fused_search, None
    stepwise = beam_search(models, SOURCES, search, **options)
    model.fused_search = kept
    return whole, stepwise


def check(whole, stepwise):
    """The same words; sums of float32's logarithms may be rounded another way."""
    for found, expected in zip(whole, stepwise, strict=True):
        assert [one.ids for one in found] == [one.ids for one in expected]
        for own, other in zip(found, expected, strict=True):
            assert own.score == pytest.approx(other.score, rel=1e-5)
            assert own.log_probability == pytest.approx(other.log_probability, rel=1e-5)
            assert own.log_probabilities == pytest.approx(other.log_probabilities, rel=1e-4)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("attention", INSIDE, ids=str)
@pytest.mark.parametrize("kind", ["ssru", "transformer"])
@pytest.mark.parametrize("beam", [1, 4])
def test_every_mechanism_and_decoder(attention, kind, beam):
    model = build(decoder=kind, attention=attention, end=1.0)
    check(*both(model, SearchConfig(beam=beam, max_length=12)))


@pytest.mark.parametrize("end", [-3.0, 0.5, 2.0, 5.0])
@pytest.mark.parametrize("penalty", [0.0, 1.0, 1.5])
@pytest.mark.parametrize("wanted", [None, 1, 2, 9])
def test_endings_penalties_and_alternatives(end, penalty, wanted):
    model = build(end=end)
    search = SearchConfig(beam=3, max_length=9, length_penalty=penalty)
    check(*both(model, search, wanted=wanted))


@pytest.mark.parametrize("seed", range(8))
def test_limits_of_single_sentences(seed):
    model = build(seed=seed, end=1.5, decoder="transformer")
    search = SearchConfig(beam=4)
    check(*both(model, search, limits=[1, 3, 20, 2, 7]))


@pytest.mark.parametrize("kind", ["ssru", "transformer"])
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("steps", [3, 32])
def test_without_repeated_ngrams(size, kind, steps, monkeypatch):
    monkeypatch.setattr(fused_search, "MOST_STEPS", steps)
    model = build(decoder=kind, end=-2.0)
    plain = SearchConfig(beam=3, max_length=20)
    search = SearchConfig(beam=3, max_length=20, no_repeat_ngram=size)
    whole, stepwise = both(model, search)
    check(whole, stepwise)
    for found in whole:
        for one in found:
            grams = [tuple(one.ids[i : i + size]) for i in range(len(one.ids) - size + 1)]
            assert len(set(grams)) == len(grams)
    assert whole != beam_search([model], SOURCES, plain)


@pytest.mark.parametrize("kind", ["ssru", "transformer"])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_steps_of_a_call(steps, kind, monkeypatch):
    monkeypatch.setattr(fused_search, "MOST_STEPS", steps)
    model = build(decoder=kind, end=1.0)
    check(*both(model, SearchConfig(beam=3, max_length=11)))


def test_much_work_is_done_in_short_calls(monkeypatch):
    called = []
    loop = fused_search.run

    def counted(*given):
        called.append(given)
        return loop(*given)

    monkeypatch.setattr(fused_search, "run", counted)
    monkeypatch.setattr(fused_search, "MOST_WORK", 1)
    beam_search([build(end=-9.0)], SOURCES, SearchConfig(beam=2, max_length=6))
    assert len(called) == 7  # one a step, the end counted


@pytest.mark.parametrize("tau", [0.0, 0.3])
@pytest.mark.parametrize("remainder", [False, True])
def test_under_a_threshold(tau, remainder):
    flexible = FlexibleConfig(score="dot", sigma=0.7, remainder=remainder)
    model = build(attention=flexible, end=1.0)
    check(*both(model, SearchConfig(beam=3, max_length=9), model.limited(Limits(tau=tau))))


@pytest.mark.parametrize("kind", ["ssru", "transformer"])
def test_in_8_bits(kind):
    model = build(int8=True, decoder=kind, end=1.0)
    whole, stepwise = both(model, SearchConfig(beam=3, max_length=9))
    assert whole == stepwise


@pytest.mark.parametrize("beam", [1, 5])
def test_threads_change_nothing(beam, monkeypatch):
    monkeypatch.setattr(threads, "GRAIN", 1)
    monkeypatch.setattr(fused_search, "GRAIN", 1)
    model, search, before = build(), SearchConfig(beam=beam, max_length=9), torch.get_num_threads()
    found = []
    for count in (1, 2):
        torch.set_num_threads(count)
        found.append(beam_search([model], SOURCES, search))
    torch.set_num_threads(before)
    assert found[0] == found[1]


def test_a_vocabulary_too_large_for_a_table(monkeypatch):
    search = SearchConfig(beam=3, max_length=9)
    expected = beam_search([build()], SOURCES, search)
    monkeypatch.setattr(inference, "LARGEST_COPY", 0)
    model = build()
    assert model.word_table is None
    check(beam_search([model], SOURCES, search), expected)


def test_a_gates_table_that_would_be_too_large_is_not_read(monkeypatch):
    monkeypatch.setattr(inference, "LARGEST_TABLE", 0)
    model = random_model(attention=FlexibleConfig(score="dot"))
    assert model.word_table is None
    assert model.fused_search is None


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_broken_weights_are_named(value):
    model = build()
    model.fused_search._output.bias[7] = value
    with pytest.raises(RunError, match=r"nan|inf"):
        beam_search([model], SOURCES, SearchConfig(beam=2, max_length=5))


def test_counting_and_ensembles_go_step_by_step(monkeypatch):
    model = build()
    monkeypatch.setattr(model.fused_search, "grow", None)
    search, tally = SearchConfig(beam=2, max_length=5), Tally()
    beam_search([model], SOURCES, search, tally)
    assert tally.cps > 0
    beam_search([model, model], SOURCES, search)


@pytest.mark.parametrize("options", [
    {"attention": FlexibleConfig()}, {"attend_every": "gate"}, {"attention": MemoryConfig(
        K=3, decoder_scoring="sigmoid")}, {"bottleneck": 8},
], ids=str)  # fmt: skip
def test_what_is_between_two_calls_goes_step_by_step(options):
    assert random_model(**options).fused_search is None
