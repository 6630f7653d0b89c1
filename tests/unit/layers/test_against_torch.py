"""Transformer layers against torch's own, SSRU and positions against loops over the equations."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from nmtflex.config import ModelConfig
from nmtflex.layers.positions import sinusoids
from nmtflex.layers.ssru import Ssru
from nmtflex.model.build import build_model
from nmtflex.model.seq2seq import Seq2Seq

SIZE, HEADS, FFN, LAYERS = 12, 3, 7, 2
LENGTHS = torch.tensor([5, 1, 3])
MASK = torch.arange(5) < LENGTHS[:, None]
SOURCE = torch.randint(4, 20, (3, 5), generator=torch.Generator().manual_seed(1)) * MASK
NORMS = pytest.mark.parametrize("pre_norm", [False, True], ids=["post-norm", "pre-norm"])


def build(pre_norm: bool) -> Seq2Seq:
    torch.manual_seed(2)
    config = ModelConfig.from_flat(
        encoder="transformer", decoder="transformer", pre_norm=pre_norm, embedding_size=SIZE,
        encoder_size=SIZE, decoder_size=SIZE, encoder_heads=HEADS, decoder_heads=HEADS,
        encoder_layers=LAYERS, decoder_layers=LAYERS, encoder_ffn=FFN, decoder_ffn=FFN,
    )  # fmt: skip
    assert config.attention.score == "dot"
    model = build_model(config, 20, 20, 5).double().eval()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.7)
    return model


@torch.no_grad()
def copy(theirs: nn.Module, ours: dict[str, nn.Module], joint: dict[str, list[nn.Module]]) -> None:
    """Give torch's parts our weights; ``joint`` has what torch keeps as one matrix."""
    for name, part in ours.items():
        theirs.get_submodule(name).weight.copy_(part.weight)
        theirs.get_submodule(name).bias.copy_(part.bias)
    for name, parts in joint.items():
        attention = theirs.get_submodule(name)
        attention.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        attention.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))


def position(place: int, size: int) -> list[float]:
    """Vaswani et al., section 3.5, then the sines before the cosines."""
    interleaved = []
    for dimension in range(size):
        angle = place / 10000 ** (2 * (dimension // 2) / size)
        interleaved.append(math.cos(angle) if dimension % 2 else math.sin(angle))
    return interleaved[::2] + interleaved[1::2]


def positions(count: int) -> torch.Tensor:
    """The first positions' encodings [count, D]."""
    rows = [position(place, SIZE) for place in range(count)]
    return torch.tensor(rows, dtype=torch.float64)


@pytest.mark.parametrize("size", [1, 2, 7, 8])
def test_positions_are_the_paper_s(size):
    places = torch.tensor([[0, 1, 2], [3, 50, 10_000]])
    expected = [[position(place, size) for place in row] for row in places.tolist()]
    found = sinusoids(places, size, torch.float64)
    torch.testing.assert_close(
        found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-11
    )
    for dtype in (torch.float32, torch.bfloat16):
        rough = sinusoids(places, size, dtype)
        assert rough.dtype == dtype
        atol = 1e-3 if dtype == torch.float32 else 5e-3
        torch.testing.assert_close(rough.double(), found, rtol=0, atol=atol)


@torch.no_grad()
@NORMS
def test_the_encoder_is_torch_s(pre_norm):
    encoder = build(pre_norm).encoder
    x = encoder.embedding(SOURCE) + positions(5)
    for own in encoder.layers:
        layer = nn.TransformerEncoderLayer(
            SIZE, HEADS, FFN, 0.0, batch_first=True, norm_first=pre_norm
        ).double()
        ours = {
            "self_attn.out_proj": own.attention.output,
            "linear1": own.feed_forward.inner,
            "linear2": own.feed_forward.outer,
            "norm1": own.around_attention.norm,
            "norm2": own.around_feed_forward.norm,
        }
        copy(layer, ours, {"self_attn": [own.attention.inputs]})
        x = layer.train()(x, src_key_padding_mask=~MASK)  # train: not the fused one
    if pre_norm:
        x = encoder.norm(x)
    found = encoder(SOURCE, LENGTHS)
    torch.testing.assert_close(found.states[MASK], x[MASK], rtol=0, atol=1e-10)
    assert not found.states[~MASK].any()
    assert torch.equal(found.mask, MASK)
    assert torch.equal(found.lengths, LENGTHS)
    means = torch.stack([row[:length].mean(0) for row, length in zip(x, LENGTHS, strict=True)])
    torch.testing.assert_close(found.summary, means, rtol=0, atol=1e-10)


@NORMS
def test_the_decoder_is_torch_s(pre_norm):
    model = build(pre_norm)
    decoder, encoded = model.decoder, model.encoder(SOURCE, LENGTHS)
    embedded = torch.randn(3, 6, SIZE, dtype=torch.float64)
    x = embedded + positions(6)
    later = torch.ones(6, 6).triu(1).bool()
    for own in decoder.layers:
        layer = nn.TransformerDecoderLayer(
            SIZE, HEADS, FFN, 0.0, batch_first=True, norm_first=pre_norm
        ).double()
        ours = {
            "self_attn.out_proj": own.mixer.output,
            "multihead_attn.out_proj": own.attention.output,
            "linear1": own.feed_forward.inner,
            "linear2": own.feed_forward.outer,
            "norm1": own.around_mixer.norm,
            "norm2": own.around_attention.norm,
            "norm3": own.around_feed_forward.norm,
        }
        source = [own.attention.query, own.attention.source]
        copy(layer, ours, {"self_attn": [own.mixer.inputs], "multihead_attn": source})
        x = layer(x, encoded.states, tgt_mask=later, memory_key_padding_mask=~MASK)
    if pre_norm:
        x = decoder.norm(x)
    found, gates, _ = decoder.sequence(*decoder.start(encoded), embedded)
    assert gates is None
    torch.testing.assert_close(found, x, rtol=0, atol=1e-10)


def test_an_ssru_is_the_paper_s():
    torch.manual_seed(5)
    layer = Ssru(4).double()
    for parameter in layer.parameters():
        parameter.data.normal_()
    x = torch.randn(2, 7, 4, dtype=torch.float64)
    (w_f, w), b_f = (part.tolist() for part in layer.joint.weight.chunk(2)), layer.bias.tolist()
    expected = torch.zeros(2, 7, 4, dtype=torch.float64)
    for row in range(2):
        c = [0.0] * 4
        for step in range(7):
            inputs = x[row, step].tolist()
            for unit in range(4):
                gate = b_f[unit] + sum(a * b for a, b in zip(w_f[unit], inputs, strict=True))
                forget = 1 / (1 + math.exp(-gate))
                candidate = sum(a * b for a, b in zip(w[unit], inputs, strict=True))
                c[unit] = forget * c[unit] + (1 - forget) * candidate
                expected[row, step, unit] = max(0.0, c[unit])
    cache, state = layer.start(x[:, 0])
    found = layer.sequence(x, state)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    for step in range(7):
        y, state = layer.step(x[:, step], cache, state)
        torch.testing.assert_close(y, expected[:, step], rtol=0, atol=1e-12)
