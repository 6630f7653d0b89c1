"""The clock of a model's parts: what each takes, and that nothing is left behind."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from nmtflex.attention import Limits
from nmtflex.bench import stopwatch
from nmtflex.bench.stopwatch import Stopwatch
from nmtflex.config import AttentionConfig, ModelConfig, SearchConfig
from nmtflex.decoding.search import beam_search
from nmtflex.model.build import build_model


class Part(nn.Module):
    def forward(self, value):
        return value + 1

    best_words = log_probs = forward


class Model(nn.Module):
    """The parts that a stopwatch asks for, and a search that calls some of them."""

    device = torch.device("cpu")

    def __init__(self):
        super().__init__()
        self.attention, self.cells, self.output = Part(), Part(), Part()

    def encode(self, value, sign=1):
        return value * sign

    def words(self, value):
        return value

    def parts(self):
        return {
            "encoder": [(self, "encode")],
            "attention": [(self.attention, "forward")],
            "recurrent cell": [(self, "words"), (self.cells, "forward")],
            "output layer": [(self.output, "log_probs"), (self.output, "best_words")],
        }


@pytest.fixture
def ticks(monkeypatch):
    """Let every look at the clock be a second after the one before."""
    seconds = itertools.count()
    monkeypatch.setattr(stopwatch, "time", SimpleNamespace(perf_counter=lambda: next(seconds)))


def test_each_part_has_its_seconds_and_the_search_the_rest(ticks):
    model = Model()
    with Stopwatch(model) as clock:  # looks: 0
        assert model.encode(2, sign=-1) == -2  # 1, 2
        assert model.attention(1) == 2  # 3, 4
        assert model.attention(5) == 6  # 5, 6
        assert model.output.log_probs(7) == 8  # 7, 8
        assert model.words(0) == 0  # 9, 10
        assert model.cells(0) == 1  # 11, 12
    assert clock.seconds == {  # 13 in all
        "encoder": 1,
        "attention": 2,
        "recurrent cell": 2,
        "output layer": 1,
        "search": 7,
    }


def test_two_blocks_add_up(ticks):
    model = Model()
    clock = Stopwatch(model)
    for _ in range(2):
        with clock:
            model.cells(1)
    assert clock.seconds["recurrent cell"] == 2
    assert clock.seconds["search"] == 4


def test_the_model_is_as_before_also_after_an_error():
    model = Model()
    with pytest.raises(TypeError), Stopwatch(model):
        model.output.log_probs("no number")
    assert "encode" not in vars(model)
    for part in (model.attention, model.cells, model.output):
        assert not {"forward", "best_words", "log_probs"} & set(vars(part))
    assert model.output.log_probs(1) == 2


@pytest.mark.parametrize("decoder", ["bahdanau", "luong"])
@pytest.mark.parametrize(
    "attention", [variant() for variant in AttentionConfig.variants().values()]
)
def test_a_search_spends_time_in_every_part_of_a_model(ticks, attention, decoder):
    config = ModelConfig.from_flat(
        attention=attention, decoder=decoder, embedding_size=4, encoder_size=4, decoder_size=4
    )
    model = build_model(config, 9, 9, 9).eval()
    view = model.limited(Limits(1.0) if model.gated else Limits())
    search = SearchConfig(beam=2, max_length=3)
    with Stopwatch(model) as clock:
        beam_search([view], [[4, 5]], search)
    with Stopwatch(model) as twice:
        beam_search([view, view], [[4, 5]], search)  # an ensemble asks for log-probabilities
    for seconds in (clock.seconds, twice.seconds):
        assert list(seconds) == [*model.parts(), "search"]
        assert min(seconds.values()) > 0
    methods = [call for part in model.parts().values() for call in part]
    assert all(method not in vars(module) for module, method in methods)
