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


@pytest.mark.parametrize("kernels", ["auto", "reference"])
def test_words_that_are_asked_for_follow_the_best(kernels, monkeypatch):
    monkeypatch.setenv("NMTFLEX_KERNELS", kernels)
    monkeypatch.setattr("nmtflex.layers.output.LEAST_ROWS", 2)
    monkeypatch.setattr("nmtflex.layers.output.CHUNK", 1)
    torch.manual_seed(2)
    layer = OutputLayer(4, 0, 30, None, 0.0).double().eval()
    layer.projection.bias.data.normal_()
    output = torch.randn(5, 4, dtype=torch.float64)
    also = torch.randint(3, 30, (5, 4))
    only = torch.tensor([-1, 7, -1, -1, 3])
    with torch.inference_mode():
        best = layer.best_words(output, 2, (0, 2), only)
        values, words = layer.best_words(output, 2, (0, 2), only, also)
        expected = layer.log_probs(output).gather(1, also)
    assert torch.equal(words, torch.cat([best[1], also], 1))
    assert torch.equal(values[:, :2], best[0])
    torch.testing.assert_close(values[:, 2:], expected, rtol=0, atol=1e-12)
