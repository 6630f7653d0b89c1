"""Which decoders run all steps in one operation, and that it changes nothing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nmtflex.attention import UNLIMITED, Limits
from nmtflex.config import FlexibleConfig, GlobalConfig, LocalMConfig, MemoryConfig, ModelConfig
from nmtflex.model.build import build_model
from nmtflex.model.decoders import luong
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.ops.linear.packed import PAYS

INSIDE = [GlobalConfig(score=score) for score in ("additive", "general", "dot")]
INSIDE += [
    FlexibleConfig(),
    FlexibleConfig(score="dot", gate_feedback=False),
    FlexibleConfig(score="general", remainder=True),
]
OTHERS = [
    {"attention": LocalMConfig()},
    {"attention": MemoryConfig()},
    {"cell": "gru"},
    {"decoder_layers": 2},
    {"attentional": False},
    {"input_feeding": False},
    {"attend_every": "gate"},
    {"decoder": "bahdanau"},
]


def build(**options) -> Seq2Seq:
    torch.manual_seed(2)
    chosen = {"attention": GlobalConfig(), "decoder": "luong", "dropout": 0.0, **options}
    config = ModelConfig.from_flat(embedding_size=12, encoder_size=10, decoder_size=20, **chosen)
    return build_model(config, 30, 30, 9).train()


def gradients(model: Seq2Seq, limits: Limits = UNLIMITED) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of a batch with padding, of its gates too, and the gradients of all weights."""
    draw = torch.Generator().manual_seed(3)
    source, target = (torch.randint(4, 30, (4, 7), generator=draw) for _ in range(2))
    lengths = torch.tensor([7, 3, 5, 1])
    source = source.where(torch.arange(7) < lengths.unsqueeze(1), 0)
    target[1:, 4:] = 0
    beta = 0.3 if model.decoder.mechanisms()[0].gated else 0.0
    loss = model.loss(source, lengths, target, target, 0.1, beta, limits=limits)
    model.zero_grad()
    loss.objective.backward()
    return loss.objective.detach(), {
        name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None
    }


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The dropout of each call of the operation."""
    found, run = [], luong.steps

    def noted(*given):
        found.append(given[-1])
        return run(*given)

    monkeypatch.setattr(luong, "steps", noted)
    return found


@pytest.mark.skipif(not PAYS, reason="no compiled tiles for this processor")
@pytest.mark.parametrize("attention", INSIDE, ids=str)
def test_loss_and_gradients_are_those_of_single_steps(attention, calls, monkeypatch):
    check(build(attention=attention), UNLIMITED, calls, monkeypatch)


@pytest.mark.skipif(not PAYS, reason="no compiled tiles for this processor")
@pytest.mark.parametrize("tau", [0.0, 0.3, 2.0])
def test_a_threshold_in_finetuning(tau, calls, monkeypatch):
    model = build(attention=FlexibleConfig(sigma=0.8))
    check(model, UNLIMITED._replace(tau=tau), calls, monkeypatch)


def check(model, limits, calls, monkeypatch) -> None:
    loss, found = gradients(model, limits)
    assert len(calls) == 1
    monkeypatch.setenv("NMTFLEX_KERNELS", "reference")
    expected_loss, expected = gradients(model, limits)
    assert len(calls) == 1
    torch.testing.assert_close(loss, expected_loss, rtol=1e-5, atol=1e-6)
    assert found.keys() == expected.keys()
    for name, grad in found.items():
        torch.testing.assert_close(grad, expected[name], rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.skipif(not PAYS, reason="no compiled tiles for this processor")
def test_dropout_is_of_training_only(calls):
    model = build(dropout=0.25)
    gradients(model)
    gradients(model.eval())
    assert calls == [0.25, 0.0]


@pytest.mark.parametrize("options", OTHERS, ids=str)
def test_other_decoders_go_step_by_step(options, calls):
    gradients(build(**options))
    assert not calls


@pytest.mark.parametrize("attention", [GlobalConfig(), FlexibleConfig()], ids=str)
def test_weights_with_gradient_are_of_single_steps(attention, calls):
    gradients(build(attention=attention), UNLIMITED._replace(weights=True))
    assert not calls


def test_the_remainder_under_a_threshold_goes_step_by_step(calls):
    gradients(build(attention=FlexibleConfig(remainder=True)), UNLIMITED._replace(tau=1.0))
    assert not calls
