"""Which weights a training changes, and which of them at another rate."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping

from torch import Tensor, nn

from nmtflex.config import nearest
from nmtflex.errors import OptionError


def trainable(model: nn.Module, patterns: list[str]) -> list[nn.Parameter]:
    """Freeze the weights whose names match; return the others, each once.

    Raises:
        OptionError: A pattern matches nothing, or nothing is left to train.
    """
    for pattern in patterns:
        for weight in _matching(model, "--freeze", pattern):
            weight.requires_grad_(False)
    left = [weight for weight in model.parameters() if weight.requires_grad]
    if not left:
        raise OptionError(f"--freeze {' '.join(patterns)} leaves nothing to train")
    return left


def factors_of(model: nn.Module, factors: Mapping[str, float]) -> dict[Tensor, float]:
    """Return the factor of each trained weight that has one.

    Args:
        model: With frozen weights.
        factors: By pattern of names; the last match counts.

    Raises:
        OptionError: A pattern matches nothing, or only frozen weights.
    """
    found: dict[Tensor, float] = {}
    for pattern, factor in factors.items():
        matching = [
            weight for weight in _matching(model, "--lr-factor", pattern) if weight.requires_grad
        ]
        if not matching:
            raise OptionError(f"--lr-factor {pattern!r} matches only weights that --freeze keeps")
        found |= dict.fromkeys(matching, factor)
    return found


def _matching(model: nn.Module, flag: str, pattern: str) -> list[nn.Parameter]:
    """Return the weights whose names match; tied ones match by either name.

    Raises:
        OptionError: There are none.
    """
    weights = dict(model.named_parameters(remove_duplicate=False))
    if matching := fnmatch.filter(weights, pattern):
        return [weights[name] for name in matching]
    groups = dict.fromkeys(f"{name.partition('.')[0]}.*" for name in weights)
    raise OptionError(
        f"{flag} {pattern!r} matches no weights; there are {', '.join(groups)}"
        f"{nearest(pattern, [*groups, *weights])}"
    )
