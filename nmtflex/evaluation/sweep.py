"""The trade-off of flexible attention: BLEU against computations, threshold by threshold.

Shu and Nakayama, section 5.3 and figure 4; the Japanese paper chooses the threshold this way, on
tuning data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from nmtflex.config import ScoreConfig
from nmtflex.decoding.translator import Translator
from nmtflex.evaluation.run_scores import evaluate_run, run_scorer
from nmtflex.files import csv_text

COLUMNS = ("tau", "bleu", "ribes", "cps", "seconds", "sentences")
ORIGIN = ("run", "split", "beam")  # further columns, the same in each row
TOTAL = ("cps_total",)  # and the last


class Point(NamedTuple):
    """A split, decoded with one threshold."""

    tau: float
    bleu: float  # 0-100
    ribes: float | None  # 0-1; None if a reference is empty
    cps: float  # score computations a step
    seconds: float  # of decoding
    sentences: int
    cps_total: float | None = None  # of all heads and attending layers; None in older tables


def sweep(
    translator_at: Callable[[float], Translator],
    taus: Iterable[float],
    sources: Sequence[str],
    references: Sequence[str],
    report: Callable[[Point], None] = lambda _: None,
) -> list[Point]:
    """Translate raw lines with each threshold; count, time and score.

    Args:
        translator_at: Returns the translator with a threshold.
        taus: Thresholds.
        sources: Raw lines.
        references: Raw lines, one each.
        report: Called with each point.

    Raises:
        RunError: The model is broken.
    """
    unlimited = translator_at(math.inf)
    unlimited.warm_up(sources)
    target = unlimited.pipeline.target
    config = ScoreConfig(ribes=all(target.words(line) for line in references))
    scorer = run_scorer(target, "the references", references, config)
    points = []
    for tau in taus:
        evaluation, _ = evaluate_run(translator_at(tau), scorer, sources)
        points.append(
            Point(
                tau=tau,
                bleu=evaluation.bleu.value,
                ribes=evaluation.ribes.value if evaluation.ribes else None,
                cps=evaluation.cps or 0.0,
                seconds=evaluation.decoding_seconds or 0.0,
                sentences=evaluation.sentences,
                cps_total=evaluation.cps_total or 0.0,
            )
        )
        report(points[-1])
    return points


def smallest_within(
    points: Sequence[Point], loss: float, baseline: float | None = None
) -> Point | None:
    """Return the point of the smallest tau that loses at most ``loss`` BLEU, if there is one.

    Args:
        points: Points of a sweep.
        loss: BLEU that may be lost.
        baseline: BLEU to compare with; by default, that of the point without threshold.

    Raises:
        ValueError: There is neither.
    """
    if baseline is None:
        baseline = next((point.bleu for point in points if point.tau == math.inf), None)
    if baseline is None:
        raise ValueError("no point has tau = inf to compare with")
    enough = [point for point in points if point.bleu >= baseline - loss]
    return min(enough, key=lambda point: point.tau, default=None)


def as_csv(points: Sequence[Point], origin: Sequence[object] = ()) -> str:
    """Return a table with a header, numbers unrounded.

    Args:
        points: Points of a sweep.
        origin: Values for ``ORIGIN``, or nothing; then ``TOTAL`` is left out too.
    """
    rows = (
        [*point[: len(COLUMNS)], *([*origin, point.cps_total] if origin else [])]
        for point in points
    )
    return csv_text(COLUMNS + (ORIGIN + TOTAL if origin else ()), rows)
