"""The encoder under bfloat16: what fills a batch up changes nothing."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nmtflex.model.encoders import recurrent as encoders
from nmtflex.model.encoders.recurrent import RecurrentEncoder
from nmtflex.ops.heap import ROWS


def batch(lengths):
    source = torch.randint(4, 20, (len(lengths), max(lengths)))
    for row, length in enumerate(lengths):
        source[row, length:] = 0
    return source, torch.tensor(lengths)


@pytest.mark.parametrize("lengths", [[70], [9, 33, 1, 27, 9], [64], [60, 60, 60]])
def test_a_batch_is_filled_up_to_a_multiple_of_rows(lengths):
    source, numbers = batch(lengths)
    filled, given = encoders._filled_up(source, numbers)
    assert int(given.sum()) % ROWS == 0
    assert int(given.sum()) - sum(lengths) < ROWS
    assert given[: len(lengths)].tolist() == lengths
    assert torch.equal(filled[: len(lengths)], source)
    assert not filled[len(lengths) :].any()
    assert len(filled) == len(given)


def test_a_short_batch_stays_as_it_is():
    source, lengths = batch([3, 5])
    assert encoders._filled_up(source, lengths) == (source, lengths)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_the_sentences_of_a_batch_are_read_as_without(cell, monkeypatch):
    torch.manual_seed(1)
    encoder = RecurrentEncoder(nn.Embedding(20, 8), cell, size=8, num_layers=2, dropout=0.0)
    source, lengths = batch([9, 33, 1, 27, 9])
    found = []
    for fill in (encoders._filled_up, lambda *given: given):
        monkeypatch.setattr(encoders, "_filled_up", fill)
        encoder.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            encoded = encoder(source, lengths)
        (encoded.states.float().sum() + (encoded.summary.float() ** 2).sum()).backward()
        found.append([*encoded, *(weight.grad for weight in encoder.parameters())])
    for part, expected in zip(*found, strict=True):
        torch.testing.assert_close(part, expected, rtol=2e-2, atol=2e-2)
    assert torch.equal(found[0][1], found[1][1])
