"""The penalty threshold, from its spelling to the mechanism."""

from __future__ import annotations

import json
import math
import re

import pytest
import torch

from nmtflex.attention import Limits
from nmtflex.config import DeviceConfig, FlexibleConfig, ModelConfig
from nmtflex.errors import OptionError
from nmtflex.model.build import build_model
from nmtflex.runs.opening import load_run
from nmtflex.runs.limits import run_threshold, run_thresholds, threshold_value, under

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
