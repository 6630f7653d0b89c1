from __future__ import annotations

import math
import random

import pytest
import torch
from table_model import TableModel

from nmtflex.config import SearchConfig
from nmtflex.decoding.forced import log_probabilities
from nmtflex.decoding.search import beam_search
from nmtflex.errors import RunError


def test_equals_the_definition_in_any_batch() -> None:
    model = TableModel(15)
    draw = random.Random(0)
    pairs = [
        (
            [draw.randrange(4, 30) for _ in range(draw.randrange(1, 9))],
            [draw.randrange(4, 15) for _ in range(draw.randrange(9))],
        )
        for _ in range(30)
    ]
    expected = [
        sum(model.defined(source, target[:at])[word] for at, word in enumerate([*target, 3]))
        for source, target in pairs
    ]
    for size in (1, 7, 64):
        assert log_probabilities([model], pairs, size) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("max_length", [0, 3])
def test_equals_what_the_search_reports(max_length: int) -> None:
    model = TableModel(40)
    sources = [[4], [5, 6, 7, 8], [9, 9]]
    config = SearchConfig(beam=4, max_length=max_length)
    for source, hypotheses in zip(sources, beam_search([model], sources, config), strict=True):
        pairs = [(source, hypothesis.ids) for hypothesis in hypotheses]
        reported = [hypothesis.log_probability for hypothesis in hypotheses]
        assert log_probabilities([model], pairs) == pytest.approx(reported, abs=1e-12)


def test_an_empty_source_has_the_empty_translation_alone() -> None:
    model = TableModel(10)
    values = log_probabilities([model], [([], []), ([], [4]), ([4], [])])
    assert values[:2] == [0.0, -math.inf]
    assert values[2] == model.defined([4], [])[3]


def test_a_broken_model_is_an_error() -> None:
    model = TableModel(10)
    model.table.fill_(torch.nan)
    with pytest.raises(RunError, match="log-probability of nan"):
        log_probabilities([model], [([4], [5])])
