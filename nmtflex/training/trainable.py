"""Which weights a training changes."""

from __future__ import annotations

import fnmatch

from torch import nn

from nmtflex.config import nearest
from nmtflex.errors import OptionError


def trainable(model: nn.Module, patterns: list[str]) -> list[nn.Parameter]:
    """Freeze the weights whose names match; return the others, each once.

    Raises:
        OptionError: A pattern matches nothing, or nothing is left to train.
    """
    weights = dict(model.named_parameters(remove_duplicate=False))  # tied ones by either name
    for pattern in patterns:
        matching = fnmatch.filter(weights, pattern)
        if not matching:
            groups = dict.fromkeys(f"{name.partition('.')[0]}.*" for name in weights)
            raise OptionError(
                f"--freeze {pattern!r} matches no weights; there are {', '.join(groups)}"
                f"{nearest(pattern, [*groups, *weights])}"
            )
        for name in matching:
            weights[name].requires_grad_(False)
    left = [weight for weight in model.parameters() if weight.requires_grad]
    if not left:
        raise OptionError(f"--freeze {' '.join(patterns)} leaves nothing to train")
    return left
