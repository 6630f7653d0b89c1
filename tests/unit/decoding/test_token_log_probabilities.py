"""What the search says of each token, against forced decoding."""

from __future__ import annotations

import random

import pytest
import torch

from nmtflex.config import AttentionConfig, GlobalConfig, ModelConfig, SearchConfig
from nmtflex.decoding.ensemble import Ensemble, encode
from nmtflex.decoding.forced import forced_steps
from nmtflex.decoding.search import beam_search
from nmtflex.model.build import build_model

DRAW = random.Random(5)
SOURCES = [[DRAW.randrange(4, 20) for _ in range(length)] for length in (1, 2, 9, 14)]
KINDS = AttentionConfig.variants()


def model_of(attention: AttentionConfig, seed: int = 3, decoder: str = "luong"):
    sizes = {"embedding_size": 8, "encoder_size": 4, "decoder_size": 8}
    torch.manual_seed(seed)
    config = ModelConfig.from_flat(attention=attention, decoder=decoder, **sizes)
    model = build_model(config, 20, 25, 10).double().eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.7)
    return model


@torch.no_grad()
def forced(models, source, ids) -> list[float]:
    """Read the probability of each token off the whole distribution, a sentence at a time."""
    ensemble = Ensemble(models, encode(models, [source]))
    steps = forced_steps(ensemble, [ids])
    return [float(ensemble.log_probs()[0, expected[0]]) for _, expected in steps]


def check(models, beam: int) -> None:
    config = SearchConfig(beam=beam, max_length=7)
    for source, several in zip(SOURCES, beam_search(models, SOURCES, config), strict=True):
        for one in several:
            assert len(one.log_probabilities) == len(one.ids) + 1
            expected = forced(models, source, one.ids)
            assert one.log_probabilities == pytest.approx(expected, rel=0, abs=1e-10)
            assert sum(one.log_probabilities) == pytest.approx(one.log_probability, abs=1e-10)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("decoder", ["bahdanau", "ssru"])
def test_of_each_mechanism_and_decoder(kind: str, decoder: str) -> None:
    check([model_of(KINDS[kind](), decoder=decoder)], 3)


def test_of_an_ensemble() -> None:
    check([model_of(GlobalConfig(), seed) for seed in (1, 2, 3)], 4)


def test_of_greedy_search() -> None:
    check([model_of(GlobalConfig())], 1)
