"""Options reach the optimiser that they belong to."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from nmtflex.config import AdamConfig, AdamWConfig, SGDConfig, TrainConfig
from nmtflex.errors import OptionError
from nmtflex.training.optimizers.adam import Adam
from nmtflex.training.optimizers.build import build_optimizer
from nmtflex.training.optimizers.sgd import SGD

PATHS = {"data": Path("data"), "run": Path("run")}


def built(**options):
    config = TrainConfig.from_flat(**PATHS, **options)
    return build_optimizer(config, [nn.Parameter(torch.ones(2, 2))], 0.5, {})


def test_without_options_it_is_the_adam_of_earlier_versions():
    found = built()
    assert isinstance(found, Adam)
    assert (found.rate, found.beta1, found.beta2, found.eps) == (0.5, 0.9, 0.999, 1e-8)
    assert (found.weight_decay, found.decoupled, found.average.values) == (0.0, False, {})


def test_options_of_adam_and_adamw():
    options = {"adam_beta1": 0.8, "adam_beta2": 0.98, "adam_eps": 1e-9}
    for kind, decay in (("adam", 0.0), ("adamw", 0.01)):
        found = built(optimizer=kind, **options)
        assert (found.beta1, found.beta2, found.eps) == (0.8, 0.98, 1e-9)
        assert (found.weight_decay, found.decoupled) == (decay, kind == "adamw")
    assert built(optimizer="adamw", weight_decay=0.0).weight_decay == 0.0
    assert built(optimizer="adam", weight_decay=0.3).weight_decay == 0.3


def test_options_of_sgd_and_the_average():
    found = built(optimizer="sgd", momentum=0.9, weight_decay=0.2, ema=0.99)
    assert isinstance(found, SGD)
    assert (found.rate, found.momentum, found.weight_decay) == (0.5, 0.9, 0.2)
    assert found.average.decay == 0.99


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"momentum": 0.9}, ("--momentum", "sgd", "adam")),
        ({"optimizer": "sgd", "adam_eps": 1e-9}, ("--adam-eps", "adam and adamw", "sgd")),
        ({"optimizer": "sgd", "momentum": 1.0}, ("--momentum", "1.0")),
        ({"optimizer": "adamw", "weight_decay": -0.1}, ("--weight-decay", "-0.1")),
        ({"adam_beta2": 1.0}, ("--adam-beta2", "1.0")),
        ({"adam_eps": 0.0}, ("--adam-eps", "0.0")),
        ({"ema": 1.0}, ("--ema", "1.0")),
        ({"lr_factor": ["encoder.*"]}, ("--lr-factor", "'encoder.*'")),
        ({"lr_factor": ["a=1", "=0.5"]}, ("--lr-factor", "'=0.5'")),
        ({"lr_factor": ["a=0"]}, ("--lr-factor", "'a=0'")),
        ({"lr_factor": ["a=inf"]}, ("--lr-factor", "'a=inf'")),
        ({"lr_factor": ["a=nan"]}, ("--lr-factor", "'a=nan'")),
    ],
)
def test_what_no_optimiser_takes(options, words):
    with pytest.raises(OptionError) as raised:
        built(**options)
    assert all(word in str(raised.value) for word in words)


@pytest.mark.parametrize(
    ("optimizer", "ema", "copies"),
    [
        (AdamConfig(), 0.0, 2),
        (AdamWConfig(), 0.9, 3),
        (SGDConfig(), 0.0, 0),
        (SGDConfig(), 0.9, 1),
        (SGDConfig(momentum=0.9), 0.0, 1),
    ],
)
def test_what_is_counted_is_what_is_kept(optimizer, ema, copies):
    config = TrainConfig(**PATHS, optimizer=optimizer, ema=ema)
    assert config.copies == copies
    weight = nn.Parameter(torch.ones(2, 2))
    found = build_optimizer(config, [weight], 0.1, {})
    kept = [tensor for tensor in found.first_state(weight).values() if tensor.shape == weight.shape]
    assert len(kept) + len(found.average.values) == copies


def test_factors_of_the_rate_are_those_of_pytorchs_groups():
    """Adam's own rate is doubled for one weight; its decay goes with the rate."""
    torch.manual_seed(2)
    own = [nn.Parameter(torch.randn(3, 2)) for _ in range(3)]
    others = [nn.Parameter(weight.detach().clone()) for weight in own]
    config = TrainConfig.from_flat(**PATHS, optimizer="adamw", weight_decay=0.1)
    found = build_optimizer(config, own, 0.05, {own[1]: 2.0, own[2]: 0.25})
    groups = [{"params": [o], "lr": r} for o, r in zip(others, (0.05, 0.1, 0.0125), strict=True)]
    expected = torch.optim.AdamW(groups, weight_decay=0.1, fused=True)
    for _ in range(3):
        for weight, other in zip(own, others, strict=True):
            weight.grad = torch.randn_like(weight)
            other.grad = weight.grad.clone()
        found.step()
        expected.step()
    assert all(map(torch.equal, own, others))
