"""Embeddings."""

from __future__ import annotations

import pytest
import torch

from nmtflex.layers.embedding import Embedding


@pytest.mark.parametrize(("tied", "expected"), [(False, 1.0), (True, 1 / 8)])
def test_lookups_start_with_variance_one_and_tied_rows_with_one_over_their_size(tied, expected):
    torch.manual_seed(1)
    embedding = Embedding(500, 64, tied)
    assert embedding.weight.std().item() == pytest.approx(expected, rel=0.02)
    assert embedding(torch.arange(500)).std().item() == pytest.approx(1.0, rel=0.02)
