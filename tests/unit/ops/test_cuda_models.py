"""Whole models by the way that a GPU goes: training, search, traces, commands.

Triton's interpreter is slow, so everything is tiny; the numba loops say what is right.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nmtflex.attention import Limits
from nmtflex.config import AttentionConfig, GlobalConfig, ModelConfig, SearchConfig
from nmtflex.decoding.forced import log_probabilities
from nmtflex.decoding.search import beam_search
from nmtflex.decoding.traces import trace_pairs
from nmtflex.model.build import build_model
from nmtflex.model.inference import make_ready
from nmtflex.model.seq2seq import Limited, Seq2Seq

SOURCE = torch.tensor([[5, 6, 7, 8, 9], [8, 9, 4, 0, 0]])
LENGTHS = torch.tensor([5, 3])
TARGET_IN = torch.tensor([[2, 5, 6], [2, 7, 0]])
TARGET_OUT = torch.tensor([[5, 6, 3], [7, 3, 0]])
SOURCES = [[5, 6, 7, 8, 9], [8, 9, 4]]
PAIRS = [([5, 6, 7, 8, 9], [5, 6]), ([8, 9, 4], [7])]
TAU = 0.4

ATTENTION = [variant() for variant in AttentionConfig.variants().values()]
ATTENTION.append(GlobalConfig(score="general"))
MODELS = [
    ModelConfig.from_flat(
        attention=attention, decoder=decoder, cell=cell,
        embedding_size=6, encoder_size=4, decoder_size=8, dropout=0.0,
    )
    for attention in ATTENTION
    for decoder, cell in (("bahdanau", "gru"), ("luong", "lstm"))
]  # fmt: skip


def name(config: ModelConfig) -> str:
    score = [config.attention.score] if hasattr(config.attention, "score") else []
    return "-".join([config.attention.kind, *score, config.decoder.kind])


models = pytest.mark.parametrize("config", MODELS, ids=name)
# What bfloat16 changes is the same in both decoders.
some_models = pytest.mark.parametrize("config", MODELS[1::2], ids=name)


def build(config: ModelConfig, device: str = "cpu", autocast: bool = False) -> Seq2Seq:
    torch.manual_seed(3)
    model = build_model(config, 12, 12, 10, autocast).eval()
    for parameter in model.parameters():  # confident, so that words depend on what came before
        parameter.data.normal_(std=0.5)
    return model.to(device)


def limits_of(model: Seq2Seq) -> Limits:
    return Limits(TAU) if model.gated else Limits()


def limited(model: Seq2Seq) -> Limited:
    """The model under a threshold, if it may have one."""
    return model.limited(limits_of(model))


@pytest.fixture
def calls(triton_device, monkeypatch) -> list[torch.dtype]:
    """The format of the keys at each call of Triton's attention."""
    from nmtflex.ops.attend import cuda

    seen: list[torch.dtype] = []
    attend = cuda.attend

    def counted(query, source, *others, **options):
        seen.append(source.keys.dtype)
        return attend(query, source, *others, **options)

    monkeypatch.setattr(cuda, "attend", counted)
    return seen


def reads_positions(config: ModelConfig) -> bool:
    return config.attention.kind not in ("none", "memory", "rfa", "monotonic")


def learn(model: Seq2Seq) -> tuple[float, list[torch.Tensor]]:
    """Loss and gradients."""
    on = model.device
    batch = SOURCE.to(on), LENGTHS, TARGET_IN.to(on), TARGET_OUT.to(on)
    model.encoder.train()  # without it cuDNN has no gradients; there is no dropout
    loss = model.loss(*batch, limits=limits_of(model))
    grads = torch.autograd.grad(loss.objective, list(model.parameters()), allow_unused=True)
    return float(loss.objective.detach()), [None if g is None else g.cpu() for g in grads]


@pytest.mark.sampled(3)
@models
def test_training(monkeypatch, triton_device, calls, config):
    loss, grads = learn(build(config, triton_device))
    assert calls == [torch.float32] * (3 if reads_positions(config) else 0)
    monkeypatch.delenv("NMTFLEX_KERNELS")
    expected, wanted = learn(build(config))
    assert loss == pytest.approx(expected, rel=1e-5)
    for grad, other in zip(grads, wanted, strict=True):
        assert (grad is None) == (other is None)
        if grad is not None:
            torch.testing.assert_close(grad, other, rtol=1e-4, atol=1e-5)


@pytest.mark.sampled(3)
@some_models
def test_training_in_bfloat16(monkeypatch, triton_device, calls, config):
    loss, grads = learn(build(config, triton_device, autocast=True))
    assert calls == [torch.bfloat16] * (3 if reads_positions(config) else 0)
    monkeypatch.delenv("NMTFLEX_KERNELS")
    expected, wanted = learn(build(config))  # in float32
    assert loss == pytest.approx(expected, rel=2e-2)
    pairs = [(a, b) for a, b in zip(grads, wanted, strict=True) if b is not None]
    assert {grad.dtype for grad, _ in pairs} == {torch.float32}
    grad, other = (
        torch.cat([part.flatten() for part in side]) for side in zip(*pairs, strict=True)
    )
    assert float((grad - other).norm() / other.norm()) < 5e-2


@pytest.mark.sampled(6)
@models
def test_search(monkeypatch, triton_device, calls, config):
    search = SearchConfig(beam=3, max_length=4)
    model = build(config, triton_device)
    make_ready(model)
    found = beam_search([limited(model)], SOURCES, search)
    assert bool(calls) == reads_positions(config)
    monkeypatch.delenv("NMTFLEX_KERNELS")
    expected = beam_search([limited(build(config))], SOURCES, search)
    for some, others in zip(found, expected, strict=True):
        assert [one.ids for one in some] == [other.ids for other in others]
        scores = [other.score for other in others]
        assert [one.score for one in some] == pytest.approx(scores, abs=1e-4)


@pytest.mark.sampled(3)
@some_models
def test_search_in_bfloat16(triton_device, calls, config):
    model = limited(build(config, triton_device, autocast=True))
    [hypotheses] = beam_search([model], SOURCES[:1], SearchConfig(beam=3, max_length=4))
    assert set(calls) <= {torch.bfloat16}
    sums = log_probabilities([model], [(SOURCES[0], one.ids) for one in hypotheses])
    assert [one.log_probability for one in hypotheses] == pytest.approx(sums, abs=0.05)


@pytest.mark.sampled(6)
@models
def test_traces(monkeypatch, triton_device, calls, config):
    traces = trace_pairs(limited(build(config, triton_device)), PAIRS)
    assert bool(calls) == reads_positions(config)
    monkeypatch.delenv("NMTFLEX_KERNELS")
    expected = trace_pairs(limited(build(config)), PAIRS)
    for trace, other in zip(traces, expected, strict=True):
        for part, wanted in zip(trace, other, strict=True):
            assert (part is None) == (wanted is None)
            if part is not None:
                np.testing.assert_allclose(part, wanted, rtol=1e-4, atol=1e-5)


def test_the_command(monkeypatch, triton_device, calls, command_line, tiny_run, tmp_path):
    lines = tmp_path / "lines"
    lines.write_text("a b c\n\nc a b\n", encoding="utf-8")
    options = ("-i", lines, "--beam", 2, "--max-length", 3)
    ours = command_line("translate", tiny_run, *options, "--device", triton_device)
    assert ours.code == 0
    assert calls
    monkeypatch.delenv("NMTFLEX_KERNELS")
    assert ours.out == command_line("translate", tiny_run, *options, "--device", "cpu").out
