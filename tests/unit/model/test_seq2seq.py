"""The model: training and stepping agree, whatever the parts; nothing of a batch leaks."""

from __future__ import annotations

import itertools

import pytest
import torch

from nmtflex.config import AttentionConfig, GlobalConfig, ModelConfig
from nmtflex.model.build import build_model
from nmtflex.model.seq2seq import Seq2Seq

SOURCE = torch.tensor([[5, 6, 7, 8], [8, 9, 0, 0], [4, 0, 0, 0]])
LENGTHS = torch.tensor([4, 2, 1])
TARGET_IN = torch.tensor([[2, 5, 6], [2, 7, 0], [2, 4, 9]])
TARGET_OUT = torch.tensor([[5, 6, 3], [7, 3, 0], [4, 9, 3]])

ATTENTION = [variant() for variant in AttentionConfig.variants().values()] + [
    GlobalConfig(score="general")
]
DECODERS = [
    {"decoder": "bahdanau"},
    {"decoder": "bahdanau", "deep_output": True},
    {"decoder": "luong"},
    {"decoder": "luong", "input_feeding": False},
    {"decoder": "luong", "attentional": False},
    {"decoder": "luong", "attentional": False, "input_feeding": False},
]
CASES = [
    ModelConfig.from_flat(
        attention=attention,
        **decoder,
        cell=cell,
        embedding_size=6,
        encoder_size=4,
        decoder_size=5,
        encoder_layers=layers,
        decoder_layers=layers,
        bottleneck=6,
        tie_embeddings=tie,
    )
    for attention, decoder, (cell, layers, tie) in itertools.product(
        ATTENTION, DECODERS, [("lstm", 1, "none"), ("gru", 2, "all"), ("lstm", 2, "target")]
    )
]


def build(config: ModelConfig) -> Seq2Seq:
    torch.manual_seed(7)
    return build_model(config, 12, 12, 10).double().eval()


@pytest.fixture(params=CASES, ids=lambda c: f"{c.attention.kind}-{c.decoder.kind}-{c.encoder.cell}")
def model(request: pytest.FixtureRequest) -> Seq2Seq:
    return build(request.param)


@pytest.mark.sampled(4)
@torch.no_grad()
def test_steps_sum_to_the_loss(model):
    loss = model.loss(SOURCE, LENGTHS, TARGET_IN, TARGET_OUT)
    memory, state = model.encode(SOURCE, LENGTHS)
    rows, total = torch.arange(3), 0.0
    for step in range(3):
        output = model.step(memory, rows, state, TARGET_IN[:, step])
        state = output.state
        log_probs = model.log_probs(output.output)
        torch.testing.assert_close(log_probs.exp().sum(1), torch.ones(3).double())
        real = TARGET_OUT[:, step] != 0
        total -= log_probs[rows[real], TARGET_OUT[real, step]].sum()
    assert loss.tokens == 8
    torch.testing.assert_close(loss.cross_entropy, total)
    torch.testing.assert_close(loss.objective, total)


@pytest.mark.sampled(4)
@torch.no_grad()
def test_a_sentence_alone_scores_as_in_its_batch(model):
    together = model.loss(SOURCE, LENGTHS, TARGET_IN, TARGET_OUT).cross_entropy
    apart = sum(
        model.loss(
            SOURCE[b : b + 1, : LENGTHS[b]], LENGTHS[b : b + 1], TARGET_IN[b, None], y[None]
        ).cross_entropy
        for b, y in enumerate(TARGET_OUT)
    )
    torch.testing.assert_close(together, apart, rtol=1e-12, atol=0)


@pytest.mark.sampled(4)
@torch.no_grad()
def test_hypotheses_of_a_sentence_share_its_memory(model):
    memory, start = model.encode(SOURCE, LENGTHS)
    rows = torch.tensor([0, 0, 2])
    state = tuple(part[rows] for part in start)
    found = model.step(memory, rows, state, torch.tensor([5, 6, 4]), trace=True)
    for n, row in enumerate(rows.tolist()):
        alone_memory, alone = model.encode(
            SOURCE[row : row + 1, : LENGTHS[row]], LENGTHS[row : row + 1]
        )
        token = torch.tensor([[5, 6, 4][n]])
        expected = model.step(alone_memory, torch.tensor([0]), alone, token)
        torch.testing.assert_close(found.output[n], expected.output[0])


@pytest.mark.sampled(4)
def test_every_parameter_gets_a_gradient(model):
    model.train().loss(SOURCE, LENGTHS, TARGET_IN, TARGET_OUT).objective.backward()
    missing = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert missing == []


@torch.no_grad()
def test_label_smoothing_is_cross_entropy_with_a_mixed_target():
    model = build(CASES[0])
    memory, state = model.encode(SOURCE, LENGTHS)
    expected = 0.0
    for step in range(3):
        output = model.step(memory, torch.arange(3), state, TARGET_IN[:, step])
        state = output.state
        for row, token in enumerate(TARGET_OUT[:, step].tolist()):
            if token:
                target = torch.full((12,), 0.1 / 12, dtype=torch.float64)
                target[token] += 0.9
                expected -= (target * model.log_probs(output.output)[row]).sum()
    loss = model.loss(SOURCE, LENGTHS, TARGET_IN, TARGET_OUT, smoothing=0.1)
    torch.testing.assert_close(loss.objective, expected)
    plain = model.loss(SOURCE, LENGTHS, TARGET_IN, TARGET_OUT).cross_entropy
    torch.testing.assert_close(loss.cross_entropy, plain)


@torch.no_grad()
def test_without_attention_the_start_is_all_there_is():
    config = ModelConfig.from_flat(attention=AttentionConfig.variants()["none"](), embedding_size=6)
    model = build(config)
    memory, state = model.encode(SOURCE, LENGTHS)
    assert memory == ()
    assert [part.shape for part in state] == [(3, 256), (3, 256)]


def test_tied_embeddings_are_one_weight():
    config = ModelConfig.from_flat(embedding_size=16, bottleneck=16, tie_embeddings="all")
    model = build(config)
    weight = model.target_embedding.weight
    assert model.output.projection.weight is weight
    assert model.encoder.embedding.weight is weight
    assert model.target_size == 12


def test_one_embedding_needs_one_vocabulary():
    config = ModelConfig.from_flat(embedding_size=16, bottleneck=16, tie_embeddings="all")
    with pytest.raises(ValueError, match="12 and 13"):
        build_model(config, 12, 13, 10)


@torch.no_grad()
def test_bfloat16_is_close_and_its_probabilities_are_float32():
    torch.manual_seed(7)
    config = ModelConfig.from_flat(embedding_size=16, encoder_size=16, decoder_size=16)
    model = build_model(config, 12, 12, 10).eval()
    memory, state = model.encode(SOURCE, LENGTHS)
    exact = model.log_probs(model.step(memory, torch.arange(3), state, TARGET_IN[:, 0]).output)
    model.autocast = True
    memory, state = model.encode(SOURCE, LENGTHS)
    rough = model.log_probs(model.step(memory, torch.arange(3), state, TARGET_IN[:, 0]).output)
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough, exact, rtol=0, atol=0.05)
