"""From options to an optimiser."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor

from nmtflex.config import AdamConfig, AdamWConfig, LoopConfig, SGDConfig
from nmtflex.training.optimizers.adam import Adam
from nmtflex.training.optimizers.base import Optimizer
from nmtflex.training.optimizers.sgd import SGD


def build_optimizer(
    config: LoopConfig, weights: Iterable[Tensor], rate: float, factors: Mapping[Tensor, float]
) -> Optimizer:
    """Make the optimiser of a training.

    Args:
        config: The loop's options.
        weights: Those that are trained.
        rate: Learning rate of the first update.
        factors: By which the rate of some weights is multiplied.
    """
    chosen = config.optimizer
    shared: dict[str, Any] = {
        "weight_decay": chosen.weight_decay,
        "ema": config.ema,
        "factors": factors,
    }
    match chosen:
        case AdamConfig() | AdamWConfig():
            return Adam(
                weights,
                rate,
                beta1=chosen.adam_beta1,
                beta2=chosen.adam_beta2,
                eps=chosen.adam_eps,
                decoupled=isinstance(chosen, AdamWConfig),
                **shared,
            )
        case SGDConfig():
            return SGD(weights, rate, momentum=chosen.momentum, **shared)
    raise ValueError(f"no optimiser for {chosen!r}")
