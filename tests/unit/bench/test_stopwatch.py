"""The clock of a model's parts: what each takes, and that nothing is left behind."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from nmtflex.bench import stopwatch
from nmtflex.bench.stopwatch import Stopwatch


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
