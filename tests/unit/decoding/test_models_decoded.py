"""The search on real models, of every cell, decoder and attention mechanism."""

from __future__ import annotations

import random

import pytest
import torch

from nmtflex.config import AttentionConfig, GlobalConfig, ModelConfig, SearchConfig
from nmtflex.decoding.forced import log_probabilities
from nmtflex.decoding.search import beam_search
from nmtflex.model.build import build_model
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

DRAW = random.Random(5)
SOURCES = [[DRAW.randrange(1, 20) for _ in range(length)] for length in (1, 2, 3, 9, 17, 4, 1, 30)]
ATTENTION = [variant() for variant in AttentionConfig.variants().values()]
ATTENTION += [GlobalConfig(score="general"), GlobalConfig(score="dot")]


@pytest.fixture(
    params=[
        ModelConfig.from_flat(
            attention=attention,
            decoder=decoder,
            cell=cell,
            embedding_size=8,
            encoder_size=4,
            decoder_size=8,
            decoder_layers=2,
        )
        for attention in ATTENTION
        for decoder in ("bahdanau", "luong")
        for cell in ("gru", "lstm")
    ],
    ids=lambda config: f"{config.attention}-{config.decoder}-{config.encoder}",
)
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    torch.manual_seed(3)
    model = build_model(request.param, 20, 25, 10).double().eval()
    for parameter in model.parameters():  # confident, so that words depend on what came before
        parameter.data.normal_(std=0.7)
    return model


@pytest.mark.sampled(6)
def test_batch_1_and_64_translate_alike(model: Seq2Seq) -> None:
    config = SearchConfig(beam=4, max_length=12)
    together = beam_search([model], SOURCES, config)
    for source, hypotheses in zip(SOURCES, together, strict=True):
        [alone] = beam_search([model], [source], config)
        assert [h.ids for h in alone] == [h.ids for h in hypotheses]
        assert [h.score for h in alone] == pytest.approx([h.score for h in hypotheses], abs=1e-9)


@pytest.mark.sampled(6)
@torch.no_grad()
def test_beam_1_is_greedy(model: Seq2Seq) -> None:
    found = beam_search([model], SOURCES, SearchConfig(beam=1, max_length=15))
    for source, [hypothesis] in zip(SOURCES, found, strict=True):
        memory, state = model.encode(torch.tensor([source]), torch.tensor([len(source)]))
        ids = [BOS_ID]
        while len(ids) <= 15:
            output = model.step(memory, torch.tensor([0]), state, torch.tensor([ids[-1]]))
            state = output.state
            log_probs = model.log_probs(output.output)[0].tolist()
            log_probs[PAD_ID] = log_probs[BOS_ID] = -torch.inf
            ids.append(max(range(25), key=log_probs.__getitem__))
            if ids[-1] == EOS_ID:
                break
        assert hypothesis.ids == [token for token in ids[1:] if token != EOS_ID]


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
def test_forced_decoding_gives_the_reported_score(model, dtype, tolerance) -> None:
    model.to(dtype)
    found = beam_search([model], SOURCES, SearchConfig(beam=3, max_length=9))
    pairs = [
        (source, hypothesis.ids)
        for source, hypotheses in zip(SOURCES, found, strict=True)
        for hypothesis in hypotheses
    ]
    reported = [hypothesis.log_probability for best in found for hypothesis in best]
    for size in (1, 64):
        assert log_probabilities([model], pairs, size) == pytest.approx(
            reported, rel=tolerance, abs=tolerance
        )


@pytest.mark.parametrize("count", [1, 2])  # an ensemble adds up probabilities
def test_in_bfloat16_too(count) -> None:
    """The logits are rounded once, with the bias added after it, wherever they are made."""
    torch.manual_seed(3)
    config = ModelConfig.from_flat(embedding_size=8, encoder_size=4, decoder_size=8, cell="gru")
    model = build_model(config, 20, 25, 10, autocast=True).eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.7)
    found = beam_search([model], SOURCES, SearchConfig(beam=3, max_length=9))
    again = beam_search([model] * count, SOURCES, SearchConfig(beam=3, max_length=9))
    assert [[h.ids for h in best] for best in again] == [[h.ids for h in best] for best in found]
    pairs = [(source, h.ids) for source, best in zip(SOURCES, again, strict=True) for h in best]
    reported = [h.log_probability for best in found for h in best]
    assert [h.log_probability for best in again for h in best] == pytest.approx(reported, abs=1e-4)
    assert log_probabilities([model] * count, pairs, 1) == pytest.approx(reported, abs=1e-4)


@pytest.mark.sampled(2)
@torch.no_grad()
def test_forced_decoding_is_the_loss(model: Seq2Seq) -> None:
    source, target = SOURCES[3], [5, 6, 1, 24]
    loss = model.loss(
        torch.tensor([source]),
        torch.tensor([len(source)]),
        torch.tensor([[BOS_ID, *target]]),
        torch.tensor([[*target, EOS_ID]]),
    )
    [value] = log_probabilities([model], [(source, target)])
    assert value == pytest.approx(-float(loss.cross_entropy), abs=1e-9)
