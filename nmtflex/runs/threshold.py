"""The penalty threshold, from how it is spelt to where it works."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from nmtflex.errors import OptionError
from nmtflex.runs.run import Run


def threshold_value(tau: str, data: dict[str, Any]) -> float:
    """Return the number that ``--tau`` stands for.

    ``auto`` is the "sweet spot" of Shu and Nakayama, section 3.1: -log10(1 / S) with S the mean
    length of the sources. They wrote 1.38 for 24.4 words, so the logarithm has base 10.

    Args:
        tau: A number, ``inf`` or ``auto``.
        data: What the run's ``config.json`` says of its data.

    Raises:
        OptionError: ``auto``, and the run has seen no validation data.
    """
    if tau != "auto":
        return float(tau)
    mean = data.get("mean_valid_source")
    if not mean:
        raise OptionError(
            "--tau auto is made of the length of the validation sources, and the run has none; "
            "give a number, such as 1.2"
        )
    return math.log10(mean)


def set_thresholds(runs: Sequence[Run], tau: str | None) -> list[float | None]:
    """Set the threshold of those of several runs that have a penalty; return it, or None, of each.

    Raises:
        OptionError: A threshold is given and no run has a penalty, or ``auto`` cannot be told.
    """
    gated = [run.model.decoder.attention.gated for run in runs]
    if tau is not None and not any(gated):
        raise OptionError(f"--tau {tau} needs a run with flexible attention")
    return [set_threshold(run, tau if has else None) for run, has in zip(runs, gated, strict=True)]


def set_threshold(run: Run, tau: str | None) -> float | None:
    """Set the threshold of an opened run, if one is given; return it.

    Raises:
        OptionError: The run's attention has no penalty, or ``auto`` cannot be told.
    """
    attention = run.model.decoder.attention
    if tau is None:
        return None
    if not attention.gated:
        raise OptionError(
            f"--tau {tau} needs flexible attention, and {run.folder.path} has "
            f"{run.model_config.attention.kind}; leave it out"
        )
    value = threshold_value(tau, run.config["data"])
    attention.set_threshold(value)
    return value
