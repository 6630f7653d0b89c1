"""``--position-shift``: in training, positions count from a random number."""

from __future__ import annotations

import pytest
import torch

from nmtflex.config import ModelConfig
from nmtflex.layers import positions
from nmtflex.layers.positions import sinusoids
from nmtflex.model.build import build_model
from nmtflex.model.decoders import layered
from nmtflex.model.encoders import transformer

UNITS = 16
SOURCE = torch.tensor([[5, 6, 7, 8], [5, 6, 0, 0], [9, 9, 9, 0]])
LENGTHS = torch.tensor([4, 2, 3])
TARGET = torch.tensor([[2, 5, 6], [2, 7, 0], [2, 9, 9]])


def build(shift, decoder="ssru"):
    torch.manual_seed(1)
    sizes = {"embedding_size": UNITS, "encoder_size": UNITS, "decoder_size": UNITS}
    small = {"encoder_layers": 1, "encoder_ffn": 24, "decoder_ffn": 24, "dropout": 0.0}
    kinds = {"encoder": "transformer", "decoder": decoder, "attention": "flexible"}
    config = ModelConfig.from_flat(**sizes, **small, **kinds, position_shift=shift)
    return build_model(config, 20, 20, 9).double()


def read(monkeypatch, model):
    """Return the positions that the encoder and the decoder read."""
    seen = []

    def watched(numbers, *rest):
        seen.append(numbers)
        return sinusoids(numbers, *rest)

    monkeypatch.setattr(transformer, "sinusoids", watched)
    monkeypatch.setattr(layered, "sinusoids", watched)
    model.loss(SOURCE, LENGTHS, TARGET, TARGET)
    return seen


@pytest.mark.parametrize("decoder", ["ssru", "transformer"])
def test_each_sentence_counts_from_its_own_number_on_either_side(monkeypatch, decoder):
    source, target = read(monkeypatch, build(50, decoder).train())
    starts = source[[0, 4, 6]]  # of the real tokens, one sentence after the other
    expected = torch.cat([starts[row] + torch.arange(size) for row, size in enumerate(LENGTHS)])
    assert source.tolist() == expected.tolist()
    assert (target - target[:, :1]).tolist() == [[0, 1, 2]] * 3
    begins = torch.cat([starts, target[:, 0]])
    assert len(set(begins.tolist())) > 2
    assert 0 <= begins.min()
    assert begins.max() <= 50


def test_numbers_are_uniform_and_include_both_ends():
    found = positions.random_shifts(6000, 5, torch.device("cpu"))
    counts = torch.bincount(found, minlength=6)
    assert len(counts) == 6
    assert counts.min() > 900


def test_without_it_and_in_inference_positions_count_from_zero(monkeypatch):
    for model in (build(0).train(), build(50).eval()):
        before = torch.get_rng_state()
        source, target = read(monkeypatch, model)
        assert source.tolist() == [0, 1, 2, 3, 0, 1, 0, 1, 2]
        assert target.tolist() == [[0, 1, 2]] * 3
        assert torch.equal(torch.get_rng_state(), before)


def test_weights_are_the_same_with_and_without_it():
    one, other = build(0).state_dict(), build(50).state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert len(one) == len(other)
