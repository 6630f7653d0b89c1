"""The weights that training reads are those that decoding shows."""

from __future__ import annotations

import pytest
import torch

from nmtflex.attention import Limits
from nmtflex.config import (
    AbcConfig,
    AttentionConfig,
    FlexibleConfig,
    GlobalConfig,
    LocalMConfig,
    LocalPConfig,
    MemoryConfig,
    MochaConfig,
    ModelConfig,
    MonotonicConfig,
    RfaConfig,
)
from nmtflex.model.build import build_model
from nmtflex.model.seq2seq import Loss, Seq2Seq
from nmtflex.text.vocabulary import BOS_ID, EOS_ID

PAIRS = [([5, 6, 7, 8, 4], [5, 6, 7]), ([8, 9], [7]), ([6, 4, 9], [4, 9, 10, 11, 5])]
MECHANISMS = [
    GlobalConfig(),
    FlexibleConfig(),
    LocalMConfig(window=1),
    LocalPConfig(window=1),
    MemoryConfig(K=3),
    MemoryConfig(K=3, encoder_scoring="softmax", decoder_scoring="sigmoid"),
    AbcConfig(K=3),
    RfaConfig(features=4, feature_map="fourier"),
    RfaConfig(features=4, feature_map="positive"),
]
SCANS = [MonotonicConfig(), MochaConfig(chunk=2)]  # they stop hard in evaluation: no gradient
LAYERED = {"encoder_size": 8, "decoder_size": 8, "decoder_layers": 2, "decoder_heads": 2}
DECODERS = [
    {"decoder": "bahdanau"},
    {"decoder": "bahdanau", "deep_output": True},
    {"decoder": "luong"},
    {"decoder": "luong", "input_feeding": False},
    {"decoder": "ssru", "embedding_size": 8, **LAYERED},
]


def build(attention: AttentionConfig, **options: object) -> Seq2Seq:
    torch.manual_seed(7)
    sizes = {"embedding_size": 4, "encoder_size": 3, "decoder_size": 5}
    config = ModelConfig.from_flat(attention=attention, **{**sizes, **options})
    model = build_model(config, 12, 12, 10).double().eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.6)
    return model


def pad(rows: list[list[int]]) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows])


def loss_of(model: Seq2Seq, limits: Limits) -> Loss:
    sources, targets = zip(*PAIRS, strict=True)
    return model.loss(
        pad(sources),
        torch.tensor([len(source) for source in sources]),
        pad([[BOS_ID, *target] for target in targets]),
        pad([[*target, EOS_ID] for target in targets]),
        limits=limits,
    )


@torch.no_grad()
def shown(model: Seq2Seq, source: list[int], target: list[int], limits: Limits) -> torch.Tensor:
    """Return the weights [T, S] of the traces of a sentence, alone in its batch."""
    memory, state = model.encode(torch.tensor([source]), torch.tensor([len(source)]), limits)
    rows = []
    for word in [BOS_ID, *target]:
        step = model.step(memory, torch.tensor([0]), state, torch.tensor([word]), trace=True)
        state = step.state
        rows.append(step.trace.weights[0])
    return torch.stack(rows)


def agree(model: Seq2Seq, limits: Limits) -> None:
    plain = loss_of(model, limits)
    loss = loss_of(model, limits._replace(weights=True))
    assert plain.weights is None
    assert loss.objective.item() == pytest.approx(plain.objective.item(), rel=1e-12)
    for row, (source, target) in enumerate(PAIRS):
        expected = shown(model, source, target, limits)
        found = loss.weights[row, : len(target) + 1]
        torch.testing.assert_close(found[:, : len(source)], expected, rtol=0, atol=1e-10)
        assert (found[:, len(source) :] == 0).all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("attention", [*MECHANISMS, *SCANS], ids=lambda config: config.kind)
@pytest.mark.parametrize("options", DECODERS, ids=lambda options: options["decoder"])
def test_of_every_mechanism_in_every_decoder(attention, options):
    agree(build(attention, **options), Limits())


@pytest.mark.parametrize("limits", [Limits(layer=1), Limits(head=0), Limits(layer=0, head=1)])
def test_of_a_layer_and_a_head(limits):
    agree(build(FlexibleConfig(), **DECODERS[-1]), limits)


@pytest.mark.parametrize("remainder", [False, True])
def test_under_a_threshold(remainder):
    agree(build(FlexibleConfig(remainder=remainder)), Limits(tau=0.3))


@pytest.mark.parametrize("attention", [FlexibleConfig(), MemoryConfig(K=3)], ids=str)
@pytest.mark.parametrize("options", DECODERS, ids=lambda options: options["decoder"])
def test_of_steps_that_mix_in_the_last_context(attention, options):
    agree(build(attention, attend_every="gate", **options), Limits())


@pytest.mark.parametrize("attention", MECHANISMS, ids=lambda config: config.kind)
@pytest.mark.parametrize("options", [DECODERS[0], DECODERS[-1]], ids=["bahdanau", "ssru"])
def test_gradients_are_slopes(attention, options):
    model = build(attention, **options)
    draw = torch.randn(3, 6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    def total() -> torch.Tensor:
        return (loss_of(model, Limits(weights=True)).weights * draw).sum()

    mechanism = dict(model.decoder.mechanisms()[0].named_parameters())
    weight = mechanism.get("alpha.weight", next(iter(model.encoder.parameters())))
    (gradient,) = torch.autograd.grad(total(), weight)
    place = int(gradient.abs().argmax())
    assert gradient.flatten()[place].abs() > 1e-6
    step = 1e-6
    with torch.no_grad():
        values = []
        for sign in (1, -1):
            weight.view(-1)[place] += sign * step
            values.append(total().item())
            weight.view(-1)[place] -= sign * step
    assert gradient.flatten()[place].item() == pytest.approx(
        (values[0] - values[1]) / (2 * step), rel=1e-5
    )
