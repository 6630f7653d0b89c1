"""What tells whether a word of a translation is right: numbers from the search and attention.

Legend: T target and S source tokens of a sentence; W target and Z source words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nmtflex.decoding.links import sum_subwords
from nmtflex.decoding.traces import Numbers, most_attended
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.vocabulary import SPECIALS

# Those of attention come last, and a model without weights over source positions has none of them.
OF_SEARCH = (
    "log_odds", "probability", "previous", "before_previous", "next", "sentence",
    "frequency", "letters", "place", "length_ratio",
)  # fmt: skip
OF_ATTENTION = ("greatest", "spread", "shared", "load")
LEAST = 1e-6  # a probability is at least this far from 0 and 1 where its logarithm is taken


def feature_names(attending: bool) -> tuple[str, ...]:
    """Return the names of the columns of ``WordFeatures.rows``, with those of attention or without.

    Each feature comes once alone and once times the probability, since most tell more about a word
    that the model doubted. On the validation data of Multi30k this halves the calibration error.
    """
    own = OF_SEARCH + OF_ATTENTION if attending else OF_SEARCH
    return own + tuple(f"probability * {name}" for name in own)


class WordFeatures:
    """What is known of the W words of a translation.

    Args:
        pipeline: The model's.
        line: The raw source.
        ids: The translation's T tokens.
        log_probabilities: [T + 1], of each token, the end last.
        weights: [T or more, S] attention weights; None if there are none.
    """

    def __init__(
        self,
        pipeline: TextPipeline,
        line: str,
        ids: Sequence[int],
        log_probabilities: Sequence[float],
        weights: Numbers | None,
    ) -> None:
        self._target = pipeline.target
        self._ids = ids
        self._tokens = [pipeline.target.vocabulary.token(number) for number in ids]
        self._starts = pipeline.target.word_starts(self._tokens)
        self._log_probabilities = np.array(log_probabilities)
        self._source_words = len(pipeline.source.word_starts(pipeline.source.segment(line)))
        self.weights = None  # [W, Z], the mean of a word's subwords, summed over those of sources
        if weights is not None and len(ids):
            sizes = np.diff([*self._starts, len(ids)])
            self.weights = sum_subwords(pipeline, line, self._tokens, weights) / sizes[:, None]

    def rows(self) -> Numbers:
        """Return the features [W, K] of each word; see ``feature_names``.

        Raises:
            ValueError: There are no words.
        """
        if not self._starts:
            raise ValueError("a translation without words has no features")
        columns = self._of_search()
        if self.weights is not None:
            columns += _of_attention(self.weights)
        own = np.column_stack(columns)
        return np.hstack([own, own * own[:, [OF_SEARCH.index("probability")]]])

    def _of_search(self) -> list[Numbers]:
        """Return the columns of ``OF_SEARCH``."""
        count = len(self._starts)
        summed = np.add.reduceat(self._log_probabilities[:-1], self._starts)
        probability = np.exp(summed)
        certain = np.clip(probability, LEAST, 1 - LEAST)
        # Nothing is more certain than the begin of a sentence; after the last word comes its end.
        padded = np.concatenate([[1.0, 1.0], probability, np.exp(self._log_probabilities[-1:])])
        rarest = np.minimum.reduceat(_counts(self._target, self._ids), self._starts)
        words = self._target.join(self._tokens)
        return [
            np.log(certain) - np.log1p(-certain),
            probability,
            padded[1 : count + 1],
            padded[:count],
            padded[3:],
            np.full(count, np.exp(self._log_probabilities).mean()),
            np.log1p(rarest),
            np.array([float(any(map(str.isalnum, word))) for word in words]),
            np.log1p(np.arange(count)),
            np.full(count, np.log(count / max(1, self._source_words))),
        ]


def _counts(side: SidePipeline, ids: Sequence[int]) -> Numbers:
    """Return how often each token was in the training data; 0 for unknown ones."""
    counts = side.vocabulary.counts
    first = len(SPECIALS)
    return np.array([counts[number - first] if number >= first else 0 for number in ids])


def _of_attention(weights: Numbers) -> list[Numbers]:
    """Return the columns of ``OF_ATTENTION`` from weights between words [W, Z]."""
    positive = np.maximum(weights, 0)  # those of rfa may be negative
    shares = positive / np.maximum(positive.sum(1, keepdims=True), LEAST)
    linked = most_attended(weights)
    return [
        weights.max(1),
        -(shares * np.log(shares + LEAST)).sum(1),
        np.bincount(linked)[linked] - 1.0,
        positive.sum(0)[linked],
    ]
