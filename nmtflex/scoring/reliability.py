"""How good probabilities are: whether they rank well, and whether they mean what they say.

Legend: N probabilities, each with what came true.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]

BINS = 10


class Bin(NamedTuple):
    """The probabilities of an interval."""

    least: float
    most: float
    size: int
    mean: float  # of the probabilities
    share: float  # that came true


class Reliability(NamedTuple):
    """Scores of probabilities."""

    size: int
    share: float  # that came true
    auc: float
    brier: float
    ece: float
    bins: list[Bin]  # without empty ones


def reliability(probabilities: Numbers, outcomes: Numbers) -> Reliability:
    """Score probabilities against what came true.

    ``auc`` is the area under the ROC curve, of those that came true and of those that did not
    alike: the probability that one of the former has a higher number than one of the latter, an
    equal one counting half (Hanley and McNeil, 1982). ``brier`` is the mean squared difference.
    ``ece``, the expected calibration error (Naeini et al., 2015,
    https://doi.org/10.1609/aaai.v29i1.9602), is the mean of |mean - share| over ten intervals of
    equal width, weighted by their counts.

    Args:
        probabilities: [N].
        outcomes: [N], 1 or 0.

    Raises:
        ValueError: All outcomes are equal, so that nothing can be ranked.
    """
    probabilities, outcomes = np.asarray(probabilities, float), np.asarray(outcomes, float)
    places = np.minimum((BINS * probabilities).astype(int), BINS - 1)
    bins = []
    for place in np.unique(places):
        inside = places == place
        mean, share = float(probabilities[inside].mean()), float(outcomes[inside].mean())
        least, most = place / BINS, (place + 1) / BINS
        bins.append(Bin(float(least), float(most), int(inside.sum()), mean, share))
    return Reliability(
        size=len(outcomes),
        share=float(outcomes.mean()),
        auc=area_under_curve(probabilities, outcomes),
        brier=float(np.mean((probabilities - outcomes) ** 2)),
        ece=sum(one.size * abs(one.mean - one.share) for one in bins) / len(outcomes),
        bins=bins,
    )


def area_under_curve(scores: Numbers, outcomes: Numbers) -> float:
    """Return the area under the ROC curve, by the sum of the ranks of those that came true.

    Raises:
        ValueError: All outcomes are equal.
    """
    true = np.asarray(outcomes) == 1
    positive, negative = int(true.sum()), int((~true).sum())
    if not (positive and negative):
        raise ValueError(f"all of {len(true)} outcomes are equal")
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]  # equal scores share their mean rank
    above = ranks[true].sum() - positive * (positive + 1) / 2
    return float(above / (positive * negative))
