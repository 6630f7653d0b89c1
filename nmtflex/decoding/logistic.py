"""Logistic regression: the probability of an event from a row of numbers.

Legend: N rows of K features.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]

TURNS = 100  # most steps of Newton's method
EXACT = 1e-10  # of the gradient, per row
CONSTANT = 1e-9  # times its mean, the deviation of a feature that says nothing


class Logistic(NamedTuple):
    """p = 1 / (1 + exp(-(bias + weights . (x - mean) / scale)))."""

    bias: float
    weights: Numbers  # [K]
    mean: Numbers  # [K]
    scale: Numbers  # [K]

    def probabilities(self, features: Numbers) -> Numbers:
        """Return [N] for rows [N, K]."""
        return _sigmoid(self.bias + ((features - self.mean) / self.scale) @ self.weights)


def fit_logistic(features: Numbers, outcomes: Numbers, penalty: float = 1.0) -> Logistic:
    """Fit by Newton's method, which is iteratively reweighted least squares.

    Features are standardised. The weights minimise the sum of -log p(outcome) over the rows plus
    penalty / 2 times the sum of squared weights, the bias left out: a convex function with a single
    minimum. A step that does not lower it is halved.

    Args:
        features: [N, K].
        outcomes: [N], 1 or 0.
        penalty: Above 0.

    Raises:
        ValueError: All outcomes are equal; the best bias is infinite.
    """
    if len(np.unique(outcomes)) < 2:
        raise ValueError(f"all of {len(outcomes)} outcomes are equal")
    mean, scale = features.mean(0), features.std(0)
    constant = scale <= CONSTANT * np.maximum(1, np.abs(mean))  # but for rounding
    scale = np.where(constant, 1.0, scale)
    rows = np.column_stack([np.ones(len(features)), (features - mean) / scale])
    ridge = np.full(rows.shape[1], penalty)
    ridge[0] = 0
    weights = np.zeros(rows.shape[1])
    for _ in range(TURNS):
        expected = _sigmoid(rows @ weights)
        gradient = rows.T @ (expected - outcomes) + ridge * weights
        if np.abs(gradient).max() <= EXACT * len(rows):
            break
        curvature = (rows * (expected * (1 - expected))[:, None]).T @ rows + np.diag(ridge)
        step = np.linalg.solve(curvature, gradient)
        before = _objective(rows, outcomes, ridge, weights)
        while _objective(rows, outcomes, ridge, weights - step) > before and np.any(step):
            step = step / 2
        weights = weights - step
    return Logistic(float(weights[0]), weights[1:], mean, scale)


def _sigmoid(logits: Numbers) -> Numbers:
    """Return 1 / (1 + exp(-logits)), without overflow."""
    small = np.exp(-np.abs(logits))
    return np.where(logits >= 0, 1, small) / (1 + small)


def _objective(rows: Numbers, outcomes: Numbers, ridge: Numbers, weights: Numbers) -> float:
    """Return the penalised negative log-likelihood."""
    logits = rows @ weights
    loss = np.logaddexp(0, logits) - outcomes * logits
    return float(loss.sum() + ridge @ weights**2 / 2)
