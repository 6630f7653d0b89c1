"""What is known of words, against loops written from docs/scoring.md."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nmtflex.decoding.word_features import WordFeatures, feature_names
from nmtflex.text.pipeline import SidePipeline, TextPipeline
from nmtflex.text.subwords import load_subwords
from nmtflex.text.tokenizers import build_tokenizer
from nmtflex.text.vocabulary import Vocabulary

SOURCE = ["ein", "Hu@@", "nd", "."]
TARGET = {"a": 50, "do@@": 7, "g": 3, ".": 90}
WEIGHTS = np.array([
    [0.5, 0.2, 0.2, 0.1],  # a
    [0.1, 0.5, 0.3, 0.1],  # do@@
    [0.2, 0.3, 0.3, 0.2],  # g
    [0.0, 0.1, 0.3, 0.0],  # <unk>
    [0.1, 0.0, 0.3, 0.6],  # .
    [0.2, 0.2, 0.2, 0.4],  # the end
])
EACH = [-0.1, -0.5, -0.7, -3.0, -0.01, -0.2]


@pytest.fixture
def pipeline(tmp_path) -> TextPipeline:
    def side(language: str, vocabulary: dict[str, int]) -> SidePipeline:
        subwords = load_subwords(tmp_path, "source", {"segmented": "bpe"})
        made = Vocabulary(list(vocabulary), list(vocabulary.values()))
        return SidePipeline(language, build_tokenizer({"name": "none"}), subwords, made)

    return TextPipeline(side("de", dict.fromkeys(SOURCE, 1)), side("en", TARGET))


def described(pipeline: TextPipeline, weights) -> tuple[WordFeatures, dict[str, list[float]]]:
    ids = [*pipeline.target.vocabulary.ids(["a", "do@@", "g", "?", "."])]
    found = WordFeatures(pipeline, " ".join(SOURCE), ids, EACH, weights)
    columns = found.rows().T.tolist()
    return found, dict(zip(feature_names(weights is not None), columns, strict=True))


def test_each_feature(pipeline) -> None:
    features, found = described(pipeline, WEIGHTS)
    sums = [-0.1, -1.2, -3.0, -0.01]  # a, dog, <unk>, .
    p = [math.exp(value) for value in sums]
    by_word = [  # means over the subwords of a target word, sums over those of a source word
        [0.5, 0.4, 0.1],
        [0.15, 0.7, 0.15],
        [0.0, 0.4, 0.0],
        [0.1, 0.3, 0.6],
    ]
    assert features.weights == pytest.approx(np.array(by_word))
    shares = [[one / sum(row) for one in row] for row in by_word]
    load = [sum(column) for column in zip(*by_word, strict=True)]
    expected = {
        "log_odds": [math.log(one / (1 - one)) for one in p],
        "probability": p,
        "previous": [1, p[0], p[1], p[2]],
        "before_previous": [1, 1, p[0], p[1]],
        "next": [p[1], p[2], p[3], math.exp(-0.2)],
        "sentence": [sum(map(math.exp, EACH)) / 6] * 4,
        "frequency": [math.log(1 + count) for count in (50, 3, 0, 90)],
        "letters": [1, 1, 1, 0],
        "place": [0, math.log(2), math.log(3), math.log(4)],
        "length_ratio": [math.log(4 / 3)] * 4,
        "greatest": [0.5, 0.7, 0.4, 0.6],
        "spread": [-sum(one * math.log(one) for one in row if one) for row in shares],
        "shared": [0, 1, 1, 0],
        "load": [load[0], load[1], load[1], load[2]],
    }
    assert list(found)[: len(expected)] == list(expected)
    for name, values in expected.items():
        assert found[name] == pytest.approx(values, abs=1e-5), name
        products = [one * value for one, value in zip(p, found[name], strict=True)]
        assert found[f"probability * {name}"] == pytest.approx(products), name


def test_without_weights_nothing_of_attention(pipeline) -> None:
    features, without = described(pipeline, None)
    _, whole = described(pipeline, WEIGHTS)
    assert features.weights is None
    assert without == {name: whole[name] for name in without}
    assert {"greatest", "spread", "shared", "load"} & set(without) == set()


def test_certain_and_impossible_words_are_finite(pipeline) -> None:
    ids = pipeline.target.vocabulary.ids(["a", "."])
    for each in ([0.0, 0.0, 0.0], [-800.0, -1e-300, -5.0]):
        assert np.isfinite(WordFeatures(pipeline, "ein", ids, each, np.zeros((3, 1))).rows()).all()


def test_a_translation_without_words(pipeline) -> None:
    with pytest.raises(ValueError, match="without words"):
        WordFeatures(pipeline, "ein", [], [-0.5], np.ones((1, 1))).rows()
