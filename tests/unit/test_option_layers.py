"""Options of two layers, such as common ones and those of an entry."""

from __future__ import annotations

import pytest

from nmtflex.config import FinetuneConfig, ModelConfig, SearchConfig, TrainConfig, layered
from nmtflex.errors import OptionError

TRAINING = (TrainConfig, ModelConfig)


def test_the_upper_layer_wins_and_the_rest_stays():
    below = {"dropout": 0.1, "beam": 5}
    found = layered((ModelConfig, SearchConfig), below, {"beam": 2})
    assert found == {"dropout": 0.1, "beam": 2}
    assert below == {"dropout": 0.1, "beam": 5}


@pytest.mark.parametrize(
    ("kind", "kept"),
    [
        ("global", {"score"}),
        ("local-p", {"score", "window"}),
        ("flexible", {"score", "sigma"}),
        ("memory", {"K"}),
        ("none", set()),
    ],
)
def test_common_options_stay_where_the_mechanism_has_them(kind, kept):
    common = {"score": "general", "window": 5, "sigma": 2.0, "K": 8}
    found = layered(TRAINING, common, {"attention": kind})
    assert found == {"attention": kind} | {name: common[name] for name in kept}


def test_an_option_of_the_upper_layer_is_never_left_out():
    assert layered(TRAINING, {}, {"attention": "none", "K": 8}) == {"attention": "none", "K": 8}


def test_an_option_of_two_families_stays_while_one_has_it():
    common = {"pre_norm": True, "encoder": "transformer"}
    assert layered(TRAINING, common, {"decoder": "luong"})["pre_norm"]
    assert "pre_norm" not in layered(TRAINING, common, {"encoder": "recurrent"})


@pytest.mark.parametrize("group", [TrainConfig, FinetuneConfig])
def test_what_an_option_conflicts_with_goes(group):
    common = {"epochs": 3, "batch_tokens": 100, "clip": 1.0}
    found = layered((group,), common, {"updates": 7, "batch_sentences": 4})
    assert found == {"clip": 1.0, "updates": 7, "batch_sentences": 4}


def test_an_unknown_kind_is_named():
    with pytest.raises(OptionError, match=r"'globl'.*did you mean global"):
        layered(TRAINING, {}, {"attention": "globl"})
