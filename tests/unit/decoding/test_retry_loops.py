"""``retry_loops``: translations that repeat themselves to the end are searched again."""

from __future__ import annotations

import pytest
import torch
from table_model import TableModel
from test_translator import PIPELINE

from nmtflex.config import BatchConfig, SearchConfig
from nmtflex.decoding.translator import Translator

SOURCES = [[4 + place % 7] * (1 + place % 5) + [4 + place] for place in range(24)]


class Forgetful(TableModel):
    """Predicts from the source and the last word alone, so that it runs into loops."""

    def step(self, memory, rows, state, tokens, trace=False):
        return super().step(memory, rows, (torch.ones_like(state[0]),), tokens, trace)


def searched(beam, size, limits, **config):
    model = Forgetful(9, seed=3)
    options = SearchConfig(beam=beam, max_length_ratio=2.0, **config)
    translator = Translator([model], PIPELINE, options, BatchConfig(batch_sentences=size))
    return translator.translate_ids(SOURCES, limits=limits)


def repeated(ids):
    """Whether four tokens in a row stand there three times, by comparing all places."""
    rows = [ids[start : start + 4] for start in range(len(ids) - 3)]
    return any(rows.count(row) >= 3 for row in rows)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("size", [1, 5, 64])
@pytest.mark.parametrize("limit", [None, 17])
def test_only_loops_are_searched_again(beam, size, limit):
    limits = None if limit is None else [limit] * len(SOURCES)
    plain, blocked, found = (
        searched(beam, size, limits, **options)
        for options in ({}, {"no_repeat_ngram": 4}, {"retry_loops": True})
    )
    loops = []
    for source, before, without, after in zip(SOURCES, plain, blocked, found, strict=True):
        most = min(limit or 1000, 2 * len(source) + 20)
        loops.append(len(before[0].ids) == most and repeated(before[0].ids))
        assert after == (without if loops[-1] else before)
        assert not repeated(after[0].ids) or len(after[0].ids) < most
    assert 0 < sum(loops) < len(loops)
