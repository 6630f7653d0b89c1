"""The transformer encoder: what padding, a batch, dropout and a long source do to it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from torch import nn

from nmtflex.config import ModelConfig
from nmtflex.layers.positions import sinusoids
from nmtflex.layers.residual import Residual
from nmtflex.model.build import build_model
from nmtflex.model.decoders import layered
from nmtflex.model.encoders import transformer
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.ops import self_attention

LENGTHS = torch.tensor([4, 1, 7, 7])
SOURCE = torch.randint(4, 20, (4, 7), generator=torch.Generator().manual_seed(3))
SOURCE = SOURCE * (torch.arange(7) < LENGTHS[:, None])
UNITS = 32


def build(**options: object) -> Seq2Seq:
    torch.manual_seed(1)
    sizes = {"embedding_size": UNITS, "encoder_size": UNITS, "decoder_size": UNITS}
    small = {"encoder_layers": 2, "encoder_ffn": 24, "decoder_ffn": 24, "attention": "flexible"}
    kinds = {"encoder": "transformer", "decoder": "ssru"}
    return build_model(ModelConfig.from_flat(**(sizes | small | kinds | options)), 20, 20, 9)


@torch.no_grad()
@pytest.mark.parametrize("pre_norm", [False, True])
def test_a_sentence_alone_is_read_as_in_its_batch(pre_norm):
    encoder = build(pre_norm=pre_norm).double().eval().encoder
    together = encoder(SOURCE, LENGTHS)
    wider = encoder(nn.functional.pad(SOURCE, (0, 3)), LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        alone = encoder(SOURCE[row : row + 1, :length], LENGTHS[row : row + 1])
        for batch in (together, wider):
            found = batch.states[row]
            torch.testing.assert_close(found[:length], alone.states[0], rtol=0, atol=1e-12)
            torch.testing.assert_close(batch.summary[row], alone.summary[0], rtol=0, atol=1e-12)
            assert not found[length:].any()


@pytest.mark.parametrize("kernels", ["auto", "reference"])
def test_a_window_limits_what_a_token_can_know_to_so_many_tokens_a_layer(kernels, monkeypatch):
    monkeypatch.setenv("NMTFLEX_KERNELS", kernels)
    encoder = build(encoder_layers=2, encoder_window=3).eval().encoder
    source = torch.randint(4, 20, (1, 40))
    changed = source.clone()
    changed[0, 20] += 1 if changed[0, 20] < 19 else -1
    lengths = torch.tensor([40])
    same = (encoder(source, lengths).states == encoder(changed, lengths).states)[0].all(1)
    assert (~same).nonzero().flatten().tolist() == list(range(20 - 6, 20 + 7))


@torch.no_grad()
def test_a_window_of_a_whole_sentence_is_none():
    encoder, wide = (build(encoder_window=window).double().eval().encoder for window in (0, 6))
    found, expected = wide(SOURCE, LENGTHS).states, encoder(SOURCE, LENGTHS).states
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("decoder", ["ssru", "transformer"])
@pytest.mark.parametrize("autocast", [False, True])
def test_every_parameter_gets_a_gradient_in_training(decoder, autocast):
    drops = {"dropout": 0.1, "ffn_dropout": 0.1, "attention_dropout": 0.1}
    model = build(decoder=decoder, **drops).train()
    model.autocast = autocast
    target = torch.randint(4, 20, (4, 6))
    model.loss(SOURCE, LENGTHS, target, target).objective.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.any(), name


@pytest.mark.parametrize("option", ["dropout", "ffn_dropout", "attention_dropout"])
def test_each_share_is_dropped_in_its_own_places(option, monkeypatch):
    """On embeddings with positions and sublayers; on hidden units; on weights of self-attention."""
    shares = []

    def attend(projections, layout, heads, dropout, *rest):
        shares.append(dropout)
        return self_attention.attend(projections, layout, heads, dropout, *rest)

    monkeypatch.setattr("nmtflex.layers.self_attention.attend", attend)
    only = {"dropout": 0.0, "ffn_dropout": 0.0, "attention_dropout": 0.0, option: 0.3}
    model = build(decoder="transformer", **only).train()
    places, dropped = {}, {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Dropout):
            places[name] = (
                "ffn_dropout"
                if "feed_forward.dropout" in name and ("around" not in name)
                else "dropout"
            )

            def watch(_, inputs, result, name=name):
                real = inputs[0] != 0
                dropped[name] = (result[real] == 0).double().mean().item()

            module.register_forward_hook(watch)
    target = torch.randint(4, 20, (4, 6))
    model.loss(SOURCE, LENGTHS, target, target)
    assert set(shares) == {only["attention_dropout"]}
    del places["output.dropout"]  # has an option of its own
    residuals = sum(isinstance(module, Residual) for module in model.modules())
    assert list(places.values()).count("dropout") == residuals + 2
    for name, own in places.items():
        assert dropped[name] == pytest.approx(only[own], abs=0.1), name


@pytest.mark.parametrize("decoder", ["ssru", "transformer"])
def test_training_counts_the_positions_of_both_sides_from_one_random_number(decoder, monkeypatch):
    plain = build(decoder=decoder, dropout=0.0).double()
    shifted = build(decoder=decoder, dropout=0.0, position_shift=5).double().train()
    target = torch.randint(4, 20, (4, 6))
    torch.manual_seed(2)
    first = shifted.encoder(SOURCE, LENGTHS).first
    torch.manual_seed(2)
    found = shifted.loss(SOURCE, LENGTHS, target, target).objective
    assert len(set(first.tolist())) > 1

    def alone(row):
        """Return the loss of one sentence whose positions are moved by hand."""

        def moved(positions, *rest):
            return sinusoids(positions + first[row], *rest)

        source, own = SOURCE[row : row + 1, : LENGTHS[row]], target[row : row + 1]
        for module in (transformer, layered):
            monkeypatch.setattr(module, "sinusoids", moved)
        return plain.loss(source, LENGTHS[row : row + 1], own, own).objective

    expected = sum(alone(row) for row in range(4))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)


def test_first_positions_are_uniform_in_training_and_0_otherwise():
    encoder = build(position_shift=3).train().encoder
    source, lengths = SOURCE.repeat(500, 1), LENGTHS.repeat(500)
    counts = torch.bincount(encoder(source, lengths).first)
    assert counts.tolist() == pytest.approx([500] * 4, abs=100)  # 5 standard deviations
    before = torch.get_rng_state()
    assert encoder.eval()(SOURCE, LENGTHS).first is None
    assert torch.equal(torch.get_rng_state(), before)


MEASURE = """
import resource, torch
from nmtflex.config import ModelConfig
from nmtflex.model.build import build_model
torch.set_num_threads(1)
config = ModelConfig.from_flat(encoder="transformer", decoder="ssru", encoder_layers=2)
model = build_model(config, 20, 20, 10).eval()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with torch.no_grad():
    lengths = torch.tensor([10_000, 9_000])
    source = torch.ones(2, 10_000).long() * (torch.arange(10_000) < lengths[:, None])
    assert bool(torch.isfinite(model.encoder(source, lengths).states).all())
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3)
"""


@pytest.mark.slow
def test_sources_of_10_000_tokens_take_little_memory():
    """Scores of all pairs at once would be 2 x 8 heads x 10,000^2 floats, 6.4 GB.

    Of one head of one sentence they would be 400 MB. Linear in the tokens are the hidden units of a
    feed-forward layer, before and after ReLU: 2 x 78 MB; or queries, keys and values in two
    layouts: 58 + 61 MB. With residuals and norms some 320 MB are in use.
    """
    done = subprocess.run(
        [sys.executable, "-c", MEASURE],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout) < 500  # MB
