"""Logistic regression against an optimiser of torch that knows nothing of its curvature."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nmtflex.decoding.logistic import fit_logistic


def problem(seed: int, rows: int = 200, features: int = 4):
    draw = np.random.default_rng(seed)
    values = draw.normal(size=(rows, features)) * [1, 10, 0.1, 3] + [0, 5, -1, 100]
    truth = 1 / (1 + np.exp(-(values[:, 0] - 0.3 * values[:, 1] + 1)))
    return values, (draw.random(rows) < truth).astype(float)


def by_torch(values, outcomes, penalty: float) -> tuple[torch.Tensor, torch.Tensor]:
    rows = torch.tensor((values - values.mean(0)) / values.std(0))
    wanted = torch.tensor(outcomes)
    weights = torch.zeros(rows.shape[1], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [weights, bias], max_iter=2000, tolerance_grad=1e-11, tolerance_change=1e-16,
        line_search_fn="strong_wolfe",
    )  # fmt: skip

    def loss():
        optimiser.zero_grad()
        found = torch.nn.functional.binary_cross_entropy_with_logits(
            rows @ weights + bias, wanted, reduction="sum"
        )
        found = found + penalty / 2 * (weights**2).sum()
        found.backward()
        return found

    optimiser.step(loss)
    return weights.detach(), bias.detach()


@pytest.mark.parametrize("penalty", [0.1, 1.0, 50.0])
@pytest.mark.parametrize("seed", range(3))
def test_finds_the_minimum(seed: int, penalty: float) -> None:
    values, outcomes = problem(seed)
    found = fit_logistic(values, outcomes, penalty)
    weights, bias = by_torch(values, outcomes, penalty)
    assert found.weights == pytest.approx(weights.numpy(), abs=1e-6)
    assert found.bias == pytest.approx(bias.item(), abs=1e-6)
    # A bias without penalty makes the mean probability that of the outcomes.
    assert found.probabilities(values).mean() == pytest.approx(outcomes.mean(), abs=1e-9)


def test_outcomes_that_a_feature_tells_apart_have_a_minimum_too() -> None:
    values = np.array([[-2.0], [-1.0], [1.0], [2.0]] * 10)
    outcomes = (values[:, 0] > 0).astype(float)
    found = fit_logistic(values, outcomes, 0.01)
    weights, _ = by_torch(values, outcomes, 0.01)
    assert found.weights == pytest.approx(weights.numpy(), abs=1e-5)
    assert ((found.probabilities(values) > 0.5) == outcomes).all()


def test_a_constant_feature_counts_nothing() -> None:
    values, outcomes = problem(1)
    more = np.hstack([values, np.full((len(values), 1), 0.1)])
    found, without = fit_logistic(more, outcomes), fit_logistic(values, outcomes)
    assert found.weights == pytest.approx([*without.weights, 0], abs=1e-9)
    assert np.isfinite(found.probabilities(more)).all()


def test_far_values_do_not_overflow() -> None:
    values, outcomes = problem(2)
    found = fit_logistic(values, outcomes).probabilities(
        np.array([values[0] + 1e9, values[0] - 1e9])
    )
    assert sorted(found) == [0.0, 1.0]


def test_equal_outcomes_have_no_minimum() -> None:
    values, _ = problem(0)
    with pytest.raises(ValueError, match="200"):
        fit_logistic(values, np.ones(200))
