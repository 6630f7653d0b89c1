"""What decoding may skip and what its traces show: from the options to the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from nmtflex.attention import Limits
from nmtflex.config import ShownConfig
from nmtflex.errors import OptionError
from nmtflex.model.seq2seq import Limited, Seq2Seq
from nmtflex.runs.opening import Run
from nmtflex.text.visible import counted


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


def check_aligned(run: Run, flag: str, aligned: bool | None = None) -> None:
    """Check that a run's attention has weights over source positions.

    Args:
        run: An opened run.
        flag: The option that needs them.
        aligned: Whether an ensemble has some that begins with this run; None: ask the run.

    Raises:
        OptionError: It has none.
    """
    if not (run.model.aligned if aligned is None else aligned):
        raise OptionError(
            f"{flag} needs weights over source positions, and {run.folder.path} has "
            f"{run.model_config.attention.in_words()}"
        )


def run_reuse(runs: Sequence[Run], below: float | None) -> list[float]:
    """Return the gate below which the steps of each run do not attend; 0 if it has no such gate.

    Raises:
        OptionError: It is given, and no run has such a gate.
    """
    if below is not None and not any(run.model.reuses for run in runs):
        raise OptionError(
            f"--reuse-below {below:g} needs a run of --attend-every gate, and "
            f"{runs[0].folder.path} attends at every step; leave it out"
        )
    return [below or 0.0 if run.model.reuses else 0.0 for run in runs]


def under(
    run: Run, tau: float | None, shown: ShownConfig | None = None, reuse: float = 0.0
) -> Limited:
    """Return a run's model as it decodes under options.

    Args:
        run: An opened run.
        tau: Threshold; None skips nothing.
        shown: The layer and the head that traces show; without it the mean of all.
        reuse: Gate below which steps do not attend.

    Raises:
        OptionError: There is no such layer or head.
    """
    shown = shown or ShownConfig()
    limits = Limits(math.inf if tau is None else tau, reuse=reuse)
    counts = {"layer": run.model.attending_layers, "head": run.model.heads}
    for name, count in counts.items():
        number = getattr(shown, name)
        if number is None:
            continue
        if number > count:
            what = counted(count, "attending layer" if name == "layer" else "head")
            raise OptionError(
                f"--{name} {number}: {run.folder.path} has {what}, so the largest is {count}"
            )
        limits = limits._replace(**{name: number - 1})
    return run.model.limited(limits)


def heads_in_mean(model: Seq2Seq, shown: ShownConfig) -> int:
    """Return of how many heads, in all layers, traces show the mean; 1 if of a single one."""
    layers = 1 if shown.layer else model.attending_layers
    return layers * (1 if shown.head else model.heads)


def shown_in_words(model: Seq2Seq, shown: ShownConfig) -> str:
    """Return which layer and head traces show, or of how many the mean; "" if there is one only."""
    counts = {"layer": model.attending_layers, "head": model.heads}
    several = {name: count for name, count in counts.items() if count > 1}
    given = {name: getattr(shown, name) for name in several}
    parts = [f"{name} {number}" for name, number in given.items() if number is not None]
    averaged = [f"{several[name]} {name}s" for name, number in given.items() if number is None]
    if averaged:
        parts.append(f"mean of {' and '.join(averaged)}")
    return ", ".join(parts)
