"""An exponential moving average of the weights."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor


class MovingAverage:
    """The average ``a`` of weights ``w``, followed update by update.

    ::

        a = d a + (1 - d) w        with d = min(decay, (1 + n) / (10 + n)) after update n

    so that the weights of the beginning are soon forgotten, as in TensorFlow's and Marian's
    averages. It has the format of the weights, float32 with ``--dtype bfloat16``.

    Args:
        weights: Those that are trained, as they are before the first update; others do not change.
        decay: 0 for no average, when every method does nothing.
    """

    def __init__(self, weights: Sequence[Tensor], decay: float) -> None:
        self.decay = decay
        self.values = {weight: weight.detach().clone() for weight in weights if decay}

    @torch.no_grad()
    def follow(self, update: int) -> None:
        """Take in the weights of an update, counted from 1."""
        decay = min(self.decay, (1 + update) / (10 + update))
        for weight, average in self.values.items():
            average.lerp_(weight, 1 - decay)

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Give the model the average as its weights for a while.

        Numbers change places in the tensors that both have; at the end, whatever ends it, they
        change back bit for bit.
        """
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    @torch.no_grad()
    def _exchange(self) -> None:
        for weight, average in self.values.items():
            kept = weight.clone()
            weight.copy_(average)
            average.copy_(kept)
