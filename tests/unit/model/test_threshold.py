"""The penalty threshold, from its spelling to the mechanism."""

from __future__ import annotations

import json
import math
import re

import pytest

from nmtflex.config import DeviceConfig, FlexibleConfig, ModelConfig
from nmtflex.errors import OptionError
from nmtflex.model.run import load_run
from nmtflex.model.seq2seq import build_model
from nmtflex.model.threshold import set_threshold, threshold_value

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
    with pytest.raises(OptionError, match=r"--tau auto is made of .*give a number, such as 1\.2"):
        threshold_value("auto", data)


@pytest.mark.parametrize("tau", ["1.38", "inf", "auto"])
def test_a_mechanism_without_a_penalty_is_named(tiny_run, tau):
    run = load_run(tiny_run, CPU)
    message = f"--tau {tau} needs flexible attention, and {tiny_run} has global; leave it out"
    with pytest.raises(OptionError, match=re.escape(message)):
        set_threshold(run, tau)


def test_nothing_is_set_where_nothing_is_given(tiny_run):
    assert set_threshold(load_run(tiny_run, CPU), None) is None


@pytest.mark.parametrize(("tau", "value"), [("auto", math.log10(4.0)), ("0.3", 0.3)])
def test_the_mechanism_gets_the_number(tiny_run, tau, value):
    config = ModelConfig.from_flat(
        attention=FlexibleConfig(), embedding_size=6, encoder_size=4, decoder_size=8
    )
    run = load_run(tiny_run, CPU)._replace(model=build_model(config, 12, 12, 10))
    assert json.loads(run.folder.config.read_text())["data"]["mean_valid_source"] == 4.0
    assert set_threshold(run, tau) == value
    assert run.model.decoder.attention.tau == value


def test_a_mechanism_without_a_penalty_refuses_one_from_a_caller():
    model = build_model(
        ModelConfig.from_flat(embedding_size=6, encoder_size=4, decoder_size=8), 12, 12, 10
    )
    with pytest.raises(ValueError, match=r"GlobalAttention has no penalty to compare with 0\.7"):
        model.decoder.attention.set_threshold(0.7)
