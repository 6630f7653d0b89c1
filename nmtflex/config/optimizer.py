"""Options of the optimisers, one class each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from nmtflex.config.base import Opt, Variant

WEIGHT_DECAY = Opt(
    "Weight decay of matrices (embeddings too, not biases and norms). adam and sgd add it times "
    "the weight to the gradient; adamw shrinks the weight itself, and has 0.01 if it is not given.",
    ge=0,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimizerConfig(Variant):
    """Options of an optimiser; one subclass each."""

    weight_decay: Annotated[float, WEIGHT_DECAY] = 0.0

    @property
    def copies(self) -> int:
        """How many numbers it keeps for each weight that it trains."""
        return 0


@dataclass(frozen=True, kw_only=True, slots=True)
class MomentsConfig(OptimizerConfig):
    """Options of Adam in both forms."""

    adam_beta1: Annotated[float, Opt("Decay of Adam's mean gradient.", ge=0, lt=1)] = 0.9
    adam_beta2: Annotated[
        float, Opt("Decay of Adam's mean squared gradient (Vaswani et al.: 0.98).", ge=0, lt=1)
    ] = 0.999
    adam_eps: Annotated[
        float, Opt("Added to the root of that mean (Vaswani et al.: 1e-9).", gt=0)
    ] = 1e-8

    @property
    def copies(self) -> int:
        """Both means."""
        return 2


@dataclass(frozen=True, kw_only=True, slots=True)
class AdamConfig(MomentsConfig):
    """Adam (Kingma & Ba)."""

    kind: ClassVar[str] = "adam"


@dataclass(frozen=True, kw_only=True, slots=True)
class AdamWConfig(MomentsConfig):
    """Adam with decoupled weight decay (Loshchilov & Hutter)."""

    kind: ClassVar[str] = "adamw"

    weight_decay: Annotated[float, WEIGHT_DECAY] = 0.01


@dataclass(frozen=True, kw_only=True, slots=True)
class SGDConfig(OptimizerConfig):
    """Stochastic gradient descent."""

    kind: ClassVar[str] = "sgd"

    momentum: Annotated[
        float, Opt("Decay of the sum of gradients that replaces the gradient.", ge=0, lt=1)
    ] = 0.0

    @property
    def copies(self) -> int:
        """The sum of gradients, if there is momentum."""
        return 1 if self.momentum else 0
