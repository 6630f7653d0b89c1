"""The penalty threshold: from the option to the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from nmtflex.attention import Limits
from nmtflex.errors import OptionError
from nmtflex.model.seq2seq import Limited
from nmtflex.runs.opening import Run


def threshold_value(tau: str, data: dict[str, Any]) -> float:
    """Return the number that ``--tau`` stands for.

    ``auto`` is the "sweet spot" of Shu and Nakayama, section 3.1: -log10(1 / S) with S the mean
    length of the sources. They wrote 1.38 for 24.4 words, so the logarithm has base 10.

    Args:
        tau: A number, ``inf`` or ``auto``.
        data: What the run's ``config.json`` says of its data.

    Raises:
        OptionError: ``auto``, and the run had no validation data.
    """
    if tau != "auto":
        return float(tau)
    mean = data.get("mean_valid_source")
    if not mean:
        raise OptionError(
            "--tau auto is computed from the validation sources, and the run has none; "
            "give a number, such as 1.2"
        )
    return math.log10(mean)


def run_thresholds(runs: Sequence[Run], tau: str | None) -> list[float | None]:
    """Return the threshold of each run, None for those of several that have no penalty.

    Raises:
        OptionError: A threshold is given and no run has a penalty, or ``auto`` is unknown.
    """
    if len(runs) == 1:
        return [run_threshold(runs[0], tau)]
    gated = [run.model.gated for run in runs]
    if tau is not None and not any(gated):
        raise OptionError(f"--tau {tau} needs a run with flexible attention")
    return [run_threshold(run, tau if has else None) for run, has in zip(runs, gated, strict=True)]


def run_threshold(run: Run, tau: str | None) -> float | None:
    """Return the threshold of an opened run, None if none is given.

    Raises:
        OptionError: The run's attention has no penalty, or ``auto`` is unknown.
    """
    if tau is None:
        return None
    if not run.model.gated:
        raise OptionError(
            f"--tau {tau} needs flexible attention, and {run.folder.path} has "
            f"{run.model_config.attention.kind}; leave it out"
        )
    return threshold_value(tau, run.config["data"])


def under(run: Run, tau: float | None) -> Limited:
    """Return a run's model as it decodes under a threshold; None skips nothing."""
    return run.model.limited(Limits() if tau is None else Limits(tau))
