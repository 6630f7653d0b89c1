"""Threshold, layer and head, from their spelling to the model."""

from __future__ import annotations

import json
import math
import re

import pytest
import torch

from nmtflex.attention import Limits
from nmtflex.config import (
    DeviceConfig,
    FlexibleConfig,
    GlobalConfig,
    ModelConfig,
    NoneConfig,
    ShownConfig,
)
from nmtflex.errors import OptionError
from nmtflex.model.build import build_model
from nmtflex.runs.limits import (
    heads_in_mean,
    run_reuse,
    run_threshold,
    run_thresholds,
    shown_in_words,
    threshold_value,
    under,
)
from nmtflex.runs.opening import load_run

CPU = DeviceConfig(device="cpu", threads=1)


@pytest.mark.parametrize(
    ("mean", "expected"), [(24.4, 1.3873898263387294), (10.0, 1.0), (1.0, 0.0)]
)
def test_auto_is_the_decimal_logarithm_of_the_mean_length(mean, expected):
    """1.38 of the paper, for 24.4 words; with the natural logarithm it would be 3.19."""
    value = threshold_value("auto", {"mean_valid_source": mean})
    assert value == pytest.approx(expected, rel=1e-12)
    assert value == pytest.approx(-math.log10(1 / mean))


@pytest.mark.parametrize(
    ("spelt", "value"), [("1.38", 1.38), ("0", 0.0), (".5", 0.5), ("2.", 2.0), ("inf", math.inf)]
)
def test_numbers_need_no_data(spelt, value):
    assert threshold_value(spelt, {}) == value


@pytest.mark.parametrize("data", [{}, {"mean_valid_source": None}])
def test_auto_without_validation_data(data):
    with pytest.raises(OptionError, match=r"--tau auto .*1\.2"):
        threshold_value("auto", data)


@pytest.mark.parametrize("tau", ["1.38", "inf", "auto"])
def test_a_mechanism_without_a_penalty_is_named(tiny_run, tau):
    run = load_run(tiny_run, CPU)
    for find in (run_threshold, lambda run, tau: run_thresholds([run], tau)[0]):
        with pytest.raises(OptionError, match=re.escape(f"--tau {tau}")) as caught:
            find(run, tau)
        assert f"{tiny_run} has global" in str(caught.value)


def test_nothing_is_left_out_where_nothing_is_given(tiny_run):
    run = load_run(tiny_run, CPU)
    assert run_threshold(run, None) is None
    assert under(run, None).limits == Limits()
    assert run_thresholds([run, run], None) == [None, None]


def gated(run):
    """The run, with a model that has a penalty."""
    config = ModelConfig.from_flat(
        attention=FlexibleConfig(), embedding_size=6, encoder_size=4, decoder_size=8
    )
    return run._replace(model=build_model(config, 12, 12, 10).eval())


@pytest.mark.parametrize(("tau", "value"), [("auto", math.log10(4.0)), ("0.3", 0.3)])
def test_a_run_decodes_under_the_number(tiny_run, tau, value):
    run = gated(load_run(tiny_run, CPU))
    assert json.loads(run.folder.config.read_text())["data"]["mean_valid_source"] == 4.0
    assert run_threshold(run, tau) == value
    assert under(run, value).limits == Limits(value)


def test_a_threshold_is_for_those_of_several_runs_that_have_a_penalty(tiny_run):
    plain = load_run(tiny_run, CPU)
    assert run_thresholds([plain, gated(plain), plain], "0.3") == [None, 0.3, None]
    with pytest.raises(OptionError, match=r"--tau 0\.3 needs a run with flexible attention"):
        run_thresholds([plain, plain], "0.3")


def test_a_gate_of_reuse_is_for_the_runs_that_have_one(tiny_run):
    plain = load_run(tiny_run, CPU)
    config = ModelConfig.from_flat(
        attend_every="gate", embedding_size=6, encoder_size=4, decoder_size=8
    )
    own = plain._replace(model=build_model(config, 12, 12, 10).eval())
    assert run_reuse([plain, own], 0.3) == [0.0, 0.3]
    assert run_reuse([plain, own], None) == [0.0, 0.0]
    assert under(own, None, reuse=0.3).limits == Limits(reuse=0.3)
    with pytest.raises(OptionError, match=r"--reuse-below 0\.3 ") as caught:
        run_reuse([plain, plain], 0.3)
    assert str(tiny_run) in str(caught.value)


@torch.no_grad()
def test_a_view_of_a_run_computes_what_its_threshold_leaves(tiny_run):
    run = gated(load_run(tiny_run, CPU))
    source, lengths, rows = torch.tensor([[4, 5, 6, 7]]), torch.tensor([4]), torch.tensor([0])
    counts = []
    for tau in (None, 0.0, math.inf):
        view = under(run, tau)
        memory, state = view.encode(source, lengths)
        step = view.step(memory, rows, state, torch.tensor([2]), trace=True)
        counts.append(step.trace.computed.item())
    assert counts == [4, 1, 4]


def test_a_mechanism_without_a_penalty_refuses_one_from_a_caller():
    model = build_model(
        ModelConfig.from_flat(embedding_size=6, encoder_size=4, decoder_size=8), 12, 12, 10
    )
    with pytest.raises(ValueError, match=r"GlobalAttention has no penalty to compare with 0\.7"):
        model.limited(Limits(0.7)).encode(torch.tensor([[4, 5]]), torch.tensor([2]))


def test_a_layer_and_a_head_count_from_1(make_layered_run):
    run = load_run(make_layered_run("layered", FlexibleConfig()), CPU)
    assert under(run, 0.5, ShownConfig(layer=2, head=1)).limits == Limits(0.5, layer=1, head=0)
    assert under(run, None, ShownConfig(head=2)).limits == Limits(head=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": 3}, r"--layer 3: .*layered has 2 attending layers, .* 2$"),
        ({"head": 3, "layer": 1}, r"--head 3: .*layered has 2 heads, .* 2$"),
    ],
)
def test_a_layer_or_a_head_that_is_not_there(make_layered_run, options, message):
    run = load_run(make_layered_run("layered", GlobalConfig(score="dot")), CPU)
    with pytest.raises(OptionError, match=message):
        under(run, None, ShownConfig(**options))


def test_layers_that_do_not_attend_are_not_counted(make_layered_run):
    options = {"decoder_layers": 4, "attending_layers": "2,4"}
    run = load_run(make_layered_run("layered", GlobalConfig(score="dot"), **options), CPU)
    assert under(run, None, ShownConfig(layer=2)).limits.layer == 1
    with pytest.raises(OptionError, match=r"--layer 4: .* 2 attending layers, .* 2$"):
        under(run, None, ShownConfig(layer=4))


@pytest.mark.parametrize("option", ["layer", "head"])
def test_a_recurrent_decoder_and_none_have_one_of_each(make_layered_run, tiny_run, option):
    for path in (tiny_run, make_layered_run("none", NoneConfig())):
        run = load_run(path, CPU)
        assert getattr(under(run, None, ShownConfig(**{option: 1})).limits, option) == 0
        assert shown_in_words(run.model, ShownConfig()) == ""
        with pytest.raises(OptionError, match=rf"--{option} 2: {path} has 1 .* 1$"):
            under(run, None, ShownConfig(**{option: 2}))


@pytest.mark.parametrize(
    ("options", "words", "heads"),
    [
        ({}, "mean of 2 layers and 2 heads", 4),
        ({"layer": 2}, "layer 2, mean of 2 heads", 2),
        ({"head": 1}, "head 1, mean of 2 layers", 2),
        ({"layer": 1, "head": 2}, "layer 1, head 2", 1),
    ],
)
def test_what_is_shown_in_words(make_layered_run, options, words, heads):
    run = load_run(make_layered_run("layered", FlexibleConfig()), CPU)
    assert shown_in_words(run.model, ShownConfig(**options)) == words
    assert heads_in_mean(run.model, ShownConfig(**options)) == heads
