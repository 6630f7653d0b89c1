"""Calibration of word scores: a logistic regression from a run's translations of a split.

A word counts as right if the reference has it too; see ``nmtflex.scoring.matched``.

Legend: N words of all translations, K features.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nmtflex.decoding.confidence import WEAK, Confidence
from nmtflex.decoding.logistic import fit_logistic
from nmtflex.decoding.traces import Numbers
from nmtflex.decoding.translator import Translator
from nmtflex.errors import DataError
from nmtflex.scoring.matched import matched_words
from nmtflex.scoring.reliability import Reliability, reliability

FOLDS = 10  # of cross-validation
LEAST = 2 * FOLDS  # translations with words, at least


class Words(NamedTuple):
    """The words of the translations of a split, one after the other."""

    features: Numbers  # [N, K]
    right: Numbers  # [N], 1 or 0
    sentence: Numbers  # [N], the number of the translation among those with words
    weights: list[Numbers | None]  # of each translation with words: [W, Z] between words


class Sentences(NamedTuple):
    """How the confidence in translations agrees with their shares of right words."""

    size: int
    error: float  # mean absolute difference
    correlation: float | None  # Pearson's; None if either is the same everywhere
    unaligned: float | None  # mean ratio; None without attention weights


class Measured(NamedTuple):
    """The scores of probabilities."""

    words: Reliability
    sentences: Sentences


def judged_words(
    translator: Translator, sources: Sequence[str], references: Sequence[str]
) -> Words:
    """Translate raw lines, and compare each word with the reference.

    Args:
        translator: The run's.
        sources: Raw lines.
        references: Raw lines, one each.

    Raises:
        DataError: Fewer than 20 translations have words, or all words are right, or all wrong.
        RunError: The model is broken.
    """
    target = translator.pipeline.target
    best = [best for (best,) in translator.n_best(sources, 1)]
    rows, right, weights = [], [], []
    described = translator.word_features(sources, best)
    for translation, features, reference in zip(best, described, references, strict=True):
        if not translation.ids:
            continue
        words = target.decode_words(translation.ids)
        rows.append(features.rows())
        right.append(matched_words(words, target.words(target.plain(reference))))
        weights.append(features.weights)
    if len(rows) < LEAST:
        raise DataError(
            f"word scores need {LEAST} translations with words, and there are {len(rows)}"
        )
    found = np.concatenate(right).astype(float)
    if found.min() == found.max():
        kind = "right" if found[0] else "wrong"
        raise DataError(f"all {len(found):,} words are {kind}; word scores need both kinds")
    numbers = np.repeat(np.arange(len(rows)), list(map(len, rows)))
    return Words(np.concatenate(rows), found, numbers, weights)


def fit(words: Words, digests: Sequence[str], about: dict[str, Any]) -> Confidence:
    """Fit word scores, and the bound on attention.

    Args:
        words: From ``judged_words``.
        digests: SHA-256 of the weights of each run.
        about: What to note in the file.
    """
    greatest = [weights.max(1) for weights in words.weights if weights is not None]
    bound = float(np.quantile(np.concatenate(greatest), WEAK)) if greatest else None
    model = fit_logistic(words.features, words.right)
    return Confidence(model, bound, list(digests), about)


def held_out(words: Words) -> Numbers:
    """Return the probability [N] of each word by a model fitted without its sentence.

    Ten-fold cross-validation: fold k has the translations k, k + 10, k + 20, ...

    Raises:
        DataError: Without a fold all words are right, or all wrong.
    """
    folds = words.sentence % FOLDS
    found = np.empty(len(folds))
    for fold in range(FOLDS):
        own = folds == fold
        try:
            model = fit_logistic(words.features[~own], words.right[~own])
        except ValueError as error:
            raise DataError(f"too few words for cross-validation: {error}") from error
        found[own] = model.probabilities(words.features[own])
    return found


def measured(words: Words, confidence: Confidence | None) -> Measured:
    """Score a calibration, or without one, by cross-validation, what ``fit`` makes.

    Args:
        words: From ``judged_words``.
        confidence: Fitted on other words.

    Raises:
        DataError: There are too few words for cross-validation.
    """
    if confidence is None:
        probabilities, bound = held_out(words), fit(words, [], {})
    else:
        probabilities, bound = confidence.model.probabilities(words.features), confidence
    agreement = _agreement(words, probabilities, bound)
    return Measured(reliability(probabilities, words.right), agreement)


def _agreement(words: Words, probabilities: Numbers, confidence: Confidence) -> Sentences:
    """Compare mean probabilities with shares of right words, translation by translation.

    Args:
        words: From ``judged_words``.
        probabilities: [N].
        confidence: Has the bound on attention.
    """
    counts = np.bincount(words.sentence)
    expected = np.bincount(words.sentence, probabilities) / counts
    share = np.bincount(words.sentence, words.right) / counts
    varied = expected.std() > 0 and share.std() > 0
    ratios = [confidence.unaligned(weights) for weights in words.weights]
    known = [ratio for ratio in ratios if ratio is not None]
    return Sentences(
        size=len(counts),
        error=float(np.abs(expected - share).mean()),
        correlation=float(np.corrcoef(expected, share)[0, 1]) if varied else None,
        unaligned=float(np.mean(known)) if known else None,
    )
