"""The output layer over more hypotheses than it takes at once."""

from __future__ import annotations

import pytest
import torch

from nmtflex.layers.output import CHUNK, LEAST_ROWS, OutputLayer

WORDS = CHUNK // LEAST_ROWS + 5
ROWS = 2 * LEAST_ROWS + 3


@torch.no_grad()
@pytest.mark.parametrize("kernels", ["auto", "reference"])
def test_each_row_has_its_own_best_words(kernels, monkeypatch):
    monkeypatch.setenv("NMTFLEX_KERNELS", kernels)
    torch.manual_seed(1)
    layer = OutputLayer(3, 0, WORDS, None, 0.0).double().eval()
    layer.projection.bias.normal_()
    output = torch.randn(ROWS, 3, dtype=torch.float64)
    only = torch.where(torch.rand(ROWS) < 0.5, torch.randint(WORDS, (ROWS,)), -1)
    values, words = layer.best_words(output, 2, (0, 2), only)
    log_probs = torch.log_softmax(output @ layer.projection.weight.t() + layer.projection.bias, 1)
    for row in range(ROWS):
        allowed = log_probs[row].clone()
        allowed[[0, 2]] = -torch.inf
        if only[row] >= 0:
            assert words[row, 0] == only[row]
            torch.testing.assert_close(values[row, 0], log_probs[row, only[row]])
            assert values[row, 1] == -torch.inf
        else:
            expected = allowed.topk(2)
            assert torch.equal(words[row], expected.indices)
            torch.testing.assert_close(values[row], expected.values)
