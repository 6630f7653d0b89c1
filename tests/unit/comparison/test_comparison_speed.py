"""Runs timed in turns, each under its own threshold, and the bytes of their sources."""

from __future__ import annotations

import pytest
import torch

from nmtflex.bench.random_model import bytes_in
from nmtflex.comparison.plan import Candidate
from nmtflex.comparison.speed import measure, source_bytes
from nmtflex.config import (
    BatchConfig,
    BenchConfig,
    Decoding,
    DeviceConfig,
    FlexibleConfig,
    GlobalConfig,
    ModelConfig,
    NoneConfig,
    SearchConfig,
    ThresholdConfig,
)
from nmtflex.decoding.opening import open_ensemble
from nmtflex.errors import OptionError
from nmtflex.model.build import build_model

FLOAT, LONG = 4, 8  # bytes


def decoding(tau=None):
    return Decoding(
        SearchConfig(beam=2), ThresholdConfig(tau=tau), BatchConfig(), DeviceConfig(threads=1)
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # Keys of 6 units and values of 2 x 4 units a position, and the number of positions.
        ({"attention": "global", "score": "additive"}, 5 * (6 + 8) * FLOAT + LONG),
        # The keys of the dot score are the values.
        ({"attention": "global", "score": "dot", "decoder_size": 8}, 5 * 8 * FLOAT + LONG),
        # 3 slots of 8 units; the weights that filled them are not kept.
        ({"attention": "memory", "K": 3}, 3 * 8 * FLOAT),
        ({"attention": "none"}, 0),
    ],
)
def test_bytes_of_a_source_by_hand(options, expected):
    sizes = {"embedding_size": 3, "encoder_size": 4, "decoder_size": 6, "decoder": "luong"}
    model = build_model(ModelConfig.from_flat(**sizes | options), 12, 12, 10).eval()
    assert source_bytes(model, 5) == expected


def test_views_of_one_storage_count_once():
    whole = torch.zeros(6)
    assert bytes_in((whole, whole[2:4])) == bytes_in(whole) == 6 * FLOAT
    assert bytes_in((whole[:2], whole[2:])) == 6 * FLOAT
    assert bytes_in(whole[2:4]) == 2 * FLOAT
    assert bytes_in((whole[:2], torch.zeros(3))) == 5 * FLOAT


def test_each_entry_decodes_under_its_own_threshold(make_tiny_run):
    run = make_tiny_run("flexible", FlexibleConfig())
    other = make_tiny_run("none", NoneConfig())
    candidates = {
        "all": Candidate(run, decoding()),
        "few": Candidate(run, decoding("0")),
        "none": Candidate(other, decoding()),
    }
    said = []
    found = measure(candidates, BenchConfig(runs=[run], repeats=3), said.append)
    assert list(found["entries"]) == ["all", "few", "none"]
    for name, entry in found["entries"].items():
        opened = open_ensemble([candidates[name].path], *candidates[name].decoding)
        ids = [opened.translator.pipeline.source.encode(line) for line in ("a b c", "c a b b")]
        best = opened.translator.translate_ids(ids, count=1)
        assert entry["target_tokens"] == sum(len(one[0].ids) + 1 for one in best)
        assert entry["source_positions"] == 4  # the mean of 3 and 4, rounded to even
        times = entry["microseconds"]
        assert len(times["rounds"]) == 3
        assert 0 < times["least"] <= times["median"] <= times["most"]
    assert (found["split"], found["beam"], found["threads"]) == ("test", 2, 1)
    assert [line for line in said if line.startswith("round 3 of 3: all ")]


def test_a_threshold_without_a_penalty_is_an_error(make_tiny_run):
    run = make_tiny_run("global", GlobalConfig())
    with pytest.raises(OptionError, match=r"--tau 0\.5 needs flexible attention"):
        measure({"one": Candidate(run, decoding("0.5"))}, BenchConfig(runs=[run]))
