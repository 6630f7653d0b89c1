"""The weights of a model by name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

Vector = np.ndarray  # [units], float64
Matrix = np.ndarray  # [rows, units], float64


class Weights:
    """Named float64 arrays, and the part of them below a prefix.

    Args:
        arrays: By full name.
        prefix: What ``name`` stands behind.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], prefix: str = "") -> None:
        self.arrays = arrays
        self.prefix = prefix

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[self.prefix + name]

    def under(self, name: str) -> Weights:
        return Weights(self.arrays, f"{self.prefix}{name}.")


def sigmoid(x: np.ndarray | float) -> np.ndarray | float:
    return 1 / (1 + np.exp(-x))


def softmax(scores: Vector) -> Vector:
    exponentials = np.exp(scores - scores.max())
    return exponentials / exponentials.sum()
