"""Fitting word scores: which words are right, and what cross-validation leaves out."""

from __future__ import annotations

import numpy as np
import pytest

import nmtflex
from nmtflex.config import GlobalConfig
from nmtflex.decoding.logistic import fit_logistic
from nmtflex.errors import DataError
from nmtflex.evaluation.calibrate import Words, fit, held_out, judged_words, measured
from nmtflex.scoring.matched import matched_words

CPU = {"device": "cpu", "threads": 1, "dtype": "float64", "max_length": 8}


def made(seed: int = 0, sentences: int = 25) -> Words:
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, 6, sentences)
    features = draw.normal(size=(sizes.sum(), 3))
    right = (draw.random(len(features)) < 1 / (1 + np.exp(-features[:, 0]))).astype(float)
    weights = [draw.dirichlet([0.5] * 4, size) for size in sizes]
    return Words(features, right, np.repeat(np.arange(sentences), sizes), weights)


def test_a_word_is_scored_without_its_sentence() -> None:
    words = made()
    expected = []
    for features, sentence in zip(words.features, words.sentence, strict=True):
        others = np.array([other % 10 != sentence % 10 for other in words.sentence])
        model = fit_logistic(words.features[others], words.right[others])
        expected.append(model.probabilities(features[None])[0])
    assert held_out(words) == pytest.approx(expected, abs=1e-12)


def test_a_twentieth_of_the_words_is_below_the_bound() -> None:
    words = made(sentences=400)
    bound = fit(words, ["ab"], {}).bound
    greatest = np.array([row.max() for weights in words.weights for row in weights])
    assert (greatest < bound).mean() == pytest.approx(0.05, abs=1 / len(greatest))
    assert fit(words._replace(weights=[None] * 400), [], {}).bound is None


def test_agreement_by_a_loop() -> None:
    words = made(2)
    confidence = fit(words, [], {})
    found = measured(words, confidence).sentences
    probabilities = confidence.model.probabilities(words.features)
    means, shares = [], []
    for sentence in range(25):
        own = words.sentence == sentence
        means.append(probabilities[own].mean())
        shares.append(words.right[own].mean())
    gaps = [abs(mean - share) for mean, share in zip(means, shares, strict=True)]
    assert found.error == pytest.approx(sum(gaps) / 25)
    a, b = np.array(means) - np.mean(means), np.array(shares) - np.mean(shares)
    assert found.correlation == pytest.approx((a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum()))
    ratios = [confidence.unaligned(weights) for weights in words.weights]
    assert found.unaligned == pytest.approx(sum(ratios) / 25)
    assert found.size == 25


def test_words_of_translations_are_compared_with_references(make_tiny_run) -> None:
    translator = nmtflex.load(make_tiny_run("run", GlobalConfig()), **CPU)
    sources = ["a b c", "", *("abcdefgh"[place % 8 :] for place in range(25)), "h g"]
    references = ["A Z A"] * len(sources)
    words = judged_words(translator, sources, references)
    best = [one for (one,) in translator.n_best(sources, 1) if one.words]
    assert words.sentence.tolist() == [n for n, one in enumerate(best) for _ in one.words]
    expected = [same for one in best for same in matched_words(one.words, ["A", "Z", "A"])]
    assert words.right.tolist() == expected
    assert len(words.features) == len(expected)
    assert [len(weights) for weights in words.weights] == [len(one.words) for one in best]


def test_too_little_to_fit(make_tiny_run) -> None:
    translator = nmtflex.load(make_tiny_run("run", GlobalConfig()), **CPU)
    with pytest.raises(DataError, match="20 translations with words, and there are 3"):
        judged_words(translator, ["a", "", "b", "c d"], ["A"] * 4)
    with pytest.raises(DataError, match="words are wrong"):
        judged_words(translator, ["a b"] * 20, ["Z"] * 20)
    lonely = made()._replace(right=np.zeros(len(made().right)))
    lonely.right[0] = 1.0
    with pytest.raises(DataError, match="cross-validation"):
        held_out(lonely)
