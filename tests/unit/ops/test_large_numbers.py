"""Scores and logits whose exponentials would all be infinite, or all be 0."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from problems import IMPLEMENTATIONS, by_hand, make

from nmtflex.ops.vocabulary import best_words, cross_entropy_rows

FORMATS = {torch.float32: 1e-4, torch.float64: 1e-12}
every_format = pytest.mark.parametrize("dtype", FORMATS, ids=str)
every_kernel = pytest.mark.parametrize("kernels", ["auto", "reference"])
far_away = pytest.mark.parametrize("far", [2000.0, -2000.0])


@every_format
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("additive", [True, False])
@far_away
def test_a_softmax_of_scores_far_from_0(implementation, additive, dtype, far):
    """All scores are shifted alike, which changes no weight."""
    problem = make(additive=additive, punished=False, dtype=dtype)
    ones = torch.ones(*problem.keys.shape[:2], 1, dtype=dtype)
    if additive:  # a unit whose tanh is 1, weighed by the shift
        problem = problem._replace(
            query=torch.cat([problem.query, 50 * torch.ones(len(problem.query), 1)], 1).to(dtype),
            keys=torch.cat([problem.keys, 0 * ones], 2),
            v=torch.cat([problem.v, torch.tensor([far], dtype=dtype)]),
        )
    else:
        problem = problem._replace(
            query=torch.cat([problem.query, far * torch.ones(len(problem.query), 1)], 1).to(dtype),
            keys=torch.cat([problem.keys, ones], 2),
        )
    contexts, focuses, weights, log_sums = by_hand(problem)
    found = problem.attend(IMPLEMENTATIONS[implementation])
    # A score of 2000 in float32 has steps of 1e-4.
    tolerance = 10 * FORMATS[dtype] if dtype == torch.float32 else 1e-10
    np.testing.assert_allclose(found.context, contexts, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.focus, focuses, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.weights, weights, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.log_sum, log_sums, rtol=tolerance, atol=tolerance)


def logits_far_away(far: float, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Random logits [5, 40] without their bias, and a bias that moves them all."""
    draw = torch.Generator().manual_seed(6)
    logits = torch.randn(5, 40, generator=draw, dtype=torch.float64).to(dtype)
    return logits, torch.full((40,), far, dtype=dtype)


@every_format
@every_kernel
@far_away
def test_the_cross_entropy_of_logits_far_from_0(kernels, dtype, far, monkeypatch):
    monkeypatch.setenv("NMTFLEX_KERNELS", kernels)
    logits, bias = logits_far_away(far, dtype)
    references = torch.tensor([3, 0, 39, 17, 5])
    exact = logits.double().numpy()
    log_probs = exact - np.log(np.exp(exact).sum(1, keepdims=True))
    expected = -log_probs[np.arange(5), references.numpy()].sum()
    smoothed, plain, _ = cross_entropy_rows(logits, bias, references, 0.1, True)
    tolerance = 10 * FORMATS[dtype]
    assert plain.item() == pytest.approx(expected, rel=tolerance)
    assert smoothed.item() == pytest.approx(
        0.9 * expected - 0.1 * log_probs.mean(1).sum(), rel=tolerance
    )
    target = np.full((5, 40), 0.1 / 40)
    target[np.arange(5), references.numpy()] += 0.9
    np.testing.assert_allclose(logits, np.exp(log_probs) - target, atol=tolerance)


@every_format
@every_kernel
@far_away
def test_the_best_of_logits_far_from_0(kernels, dtype, far, monkeypatch):
    monkeypatch.setenv("NMTFLEX_KERNELS", kernels)
    logits, bias = logits_far_away(far, dtype)
    exact = (logits + bias).double().numpy() - far
    values, words = best_words(logits, bias, 3)
    log_probs = exact - np.log(np.exp(exact).sum(1, keepdims=True))
    order = np.argsort(-log_probs, axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(words, order)
    tolerance = 10 * FORMATS[dtype]
    np.testing.assert_allclose(values, np.take_along_axis(log_probs, order, 1), atol=tolerance)
