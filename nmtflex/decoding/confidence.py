"""The probability that a word of a translation is right, and the file that ``calibrate`` writes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import nmtflex
from nmtflex.decoding.logistic import Logistic
from nmtflex.decoding.traces import Numbers, most_attended
from nmtflex.decoding.translation import Translation
from nmtflex.decoding.word_features import WordFeatures, feature_names
from nmtflex.errors import RunError
from nmtflex.files import read_json, write_json

FORMAT = 1
WEAK = 0.05  # share of the words of the validation data below the bound
TAKEN = 3  # words linked to a source word before a further one counts as unaligned


class Confidence(NamedTuple):
    """What makes scores of words; fitted by ``nmtflex calibrate``."""

    model: Logistic
    bound: float | None  # on a word's greatest weight; None without attention weights
    weights: list[str]  # SHA-256 of the weights of each run
    about: dict[str, Any]  # how it was fitted, and its scores

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the model's features."""
        return feature_names(self.bound is not None)

    def scored(self, translation: Translation, features: WordFeatures) -> Translation:
        """Return a translation with its scores.

        Args:
            translation: From the run.
            features: Of the words of its tokens.
        """
        if not translation.ids:
            return translation
        scores = self.model.probabilities(features.rows())
        scores = np.repeat(scores, translation.cuts) if translation.cuts else scores
        return translation._replace(
            word_scores=scores.tolist(),
            confidence=mean_score(scores.tolist()),
            unaligned=self.unaligned(features.weights),
        )

    def unaligned(self, weights: Numbers | None) -> float | None:
        """Return the share of words that attention links to nothing, or to what is taken.

        A word's greatest weight is below the bound, or ``TAKEN`` words before it are linked to the
        same source word.

        Args:
            weights: [W, Z] between words, at least one of each; None if there are none.
        """
        if weights is None or self.bound is None:
            return None
        linked = most_attended(weights)
        before = np.tril(linked[:, None] == linked, -1).sum(1)
        return float(((weights.max(1) < self.bound) | (before >= TAKEN)).mean())

    def save(self, path: Path) -> None:
        """Write the file; see docs/formats.md."""
        parts = self.model.mean, self.model.scale, self.model.weights
        each = zip(self.names, *parts, strict=True)
        write_json(
            path,
            {
                "format": FORMAT,
                "nmtflex": nmtflex.__version__,
                "weights": self.weights,
                **self.about,
                "bias": self.model.bias,
                "features": {
                    name: {"mean": float(mean), "scale": float(scale), "weight": float(weight)}
                    for name, mean, scale, weight in each
                },
                "bound": self.bound,
            },
        )


def no_confidence() -> Confidence:
    """Stand for the calibration of models that are of no run folder.

    Raises:
        RunError: Always.
    """
    raise RunError("these models are of no run folder, so nothing scores words; use nmtflex.load")


def mean_score(scores: Sequence[float]) -> float | None:
    """Return the confidence in a translation: its expected share of right words."""
    return math.fsum(scores) / len(scores) if scores else None


def read_confidence(runs: Sequence[Path], weights: Sequence[str], path: Path) -> Confidence:
    """Read what ``save`` wrote.

    Args:
        runs: Run folders, for the remedy in messages.
        weights: SHA-256 of the weights of each.
        path: The file.

    Raises:
        RunError: There is none, it is damaged, of another format, or fitted for other weights.
    """
    again = f"make it with: nmtflex calibrate {' '.join(map(str, runs))}"
    if not path.exists():
        raise RunError(f"{path}: no such file, and words have no scores without it; {again}")
    try:
        found = read_json(path, RunError)
    except RunError as error:
        raise RunError(f"{error}; {again}") from error
    if found.get("format") != FORMAT:
        raise RunError(
            f"{path} has format {found.get('format')!r}, and this nmtflex reads {FORMAT}; {again}"
        )
    try:
        confidence = _parsed(found)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise RunError(f"{path}: damaged: {error!r}; {again}") from error
    if confidence.weights != list(weights):
        raise RunError(f"{path} was fitted for other weights or other runs; {again}")
    return confidence


def _parsed(found: dict[str, Any]) -> Confidence:
    """Take the parts out of the file; raise one of several errors if they are damaged."""
    features = dict(found.pop("features"))
    bound = found.pop("bound")
    names = feature_names(bound is not None)
    if sorted(features) != sorted(names):
        raise ValueError(f"features are {', '.join(sorted(features))}")
    mean, scale, weights = (
        np.array([_number(features[name][part]) for name in names])
        for part in ("mean", "scale", "weight")
    )
    if (scale <= 0).any():
        raise ValueError(f"scale is {scale.min()}")
    model = Logistic(_number(found.pop("bias")), weights, mean, scale)
    about = {name: value for name, value in found.items() if name not in ("format", "nmtflex")}
    digests = list(map(str, about.pop("weights")))
    return Confidence(model, None if bound is None else _number(bound), digests, about)


def _number(value: Any) -> float:
    """Return a finite number as it is in JSON; raise TypeError for anything else."""
    if type(value) not in (int, float) or not math.isfinite(value):
        raise TypeError(f"{value!r} is not a number")
    return float(value)
