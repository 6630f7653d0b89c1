"""Intervals and p-values: sacrebleu's own, and the same resampling for RIBES."""

from __future__ import annotations

import json
import math
import os
import random

import numpy as np
import pytest
from sacrebleu.metrics.base import Metric, Score, Signature
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from nmtflex.errors import DataError
from nmtflex.scoring.bleu import bleu_metric, chrf_metric, ter_metric
from nmtflex.scoring.ribes import RibesScore, word_ribes
from nmtflex.scoring.significance import Resampling, compare, compare_ribes

METHODS = ["bootstrap", "randomisation"]


def corrupted(lines, share, seed):
    """Replace a share of the words."""
    drawn = random.Random(seed)
    return [
        " ".join("x" if drawn.random() < share else word for word in line.split()) for line in lines
    ]


@pytest.fixture(scope="module")
def texts():
    drawn = random.Random(0)
    references = [" ".join(drawn.choices("abcdefgh", k=12)) for _ in range(100)]
    systems = {
        "baseline": corrupted(references, 0.2, 1),
        "like": corrupted(references, 0.2, 2),
        "worse": corrupted(references, 0.4, 3),
    }
    return systems, references


def ribes_of(systems, references):
    return {
        name: word_ribes([line.split() for line in lines], [line.split() for line in references])
        for name, lines in systems.items()
    }


@pytest.mark.parametrize("method", METHODS)
def test_is_sacrebleus_own(monkeypatch, texts, method):
    systems, references = texts
    resampling = Resampling(method=method, samples=60, seed=7)
    found = compare(bleu_metric(), systems, [references], resampling)
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    kind, confidence = ("bs", -1) if method == "bootstrap" else ("ar", 1000)
    test = PairedTest(list(systems.items()), {"BLEU": BLEU()}, [references], kind, 60, confidence)
    signatures, columns = test()
    assert [one.system for one in found] == columns["System"] == list(systems)
    for one, result in zip(found, columns["BLEU"], strict=True):
        assert (one.metric, one.score, one.mean) == ("BLEU", result.score, result.mean)
        assert (one.margin, one.p_value) == (result.ci, result.p_value)
        assert one.signature == str(signatures["BLEU"])
    assert "|seed:7|" in found[0].signature


class Mean(Metric):
    """A metric of sacrebleu whose sentences are their scores, and whose corpus is their mean."""

    _SIGNATURE_TYPE = Signature
    num_refs = 1

    def _preprocess_segment(self, sent):
        return sent

    def _extract_reference_info(self, refs):
        return {}

    def _compute_segment_statistics(self, hypothesis, ref_kwargs):
        return [float(hypothesis), 1.0]

    def _compute_score_from_stats(self, stats):
        return Score("mean", stats[0] / stats[1])

    def _aggregate_and_compute(self, stats):
        return self._compute_score_from_stats(np.sum(stats, axis=0))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sentences", [1, 40, 130])
def test_ribes_has_sacrebleus_resamples(monkeypatch, method, sentences):
    drawn = np.random.default_rng(1)
    values = {name: drawn.random(sentences).tolist() for name in ("one", "two", "three")}
    scores = {name: RibesScore(float(np.mean(of)), of, "nrefs:1|x") for name, of in values.items()}
    found = compare_ribes(scores, Resampling(method=method, samples=150, seed=9))
    monkeypatch.setenv("SACREBLEU_SEED", "9")
    lines = [(name, list(map(repr, of))) for name, of in values.items()]
    kind, confidence = ("bs", -1) if method == "bootstrap" else ("ar", 1000)
    monkeypatch.setattr(Mean, "get_signature", lambda self: Signature({"num_refs": 1}))
    references = [[""] * sentences]
    _, columns = PairedTest(lines, {"mean": Mean()}, references, kind, 150, confidence)()
    for one, result in zip(found, columns["mean"], strict=True):
        assert one.score == pytest.approx(result.score)
        assert one.mean == pytest.approx(result.mean, abs=1e-6)  # sacrebleu: single precision
        assert one.margin == pytest.approx(result.ci, abs=1e-6)
        if sentences > 1 and result.p_value is not None:  # of one sentence, all differences equal
            assert one.p_value == pytest.approx(result.p_value, abs=0.01)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("metric", [bleu_metric(), chrf_metric(), bleu_metric("none")])
def test_verdicts(texts, method, metric):
    systems, references = texts
    resampling = Resampling(method=method, samples=200)
    baseline, like, worse = compare(metric, systems, [references], resampling)
    assert baseline.p_value is None
    assert like.p_value > 0.05
    assert worse.p_value < 0.01
    assert worse.score < worse.interval[1] < baseline.interval[0] < baseline.score + 5


@pytest.mark.parametrize("method", METHODS)
def test_verdicts_of_ribes(texts, method):
    baseline, like, worse = compare_ribes(ribes_of(*texts), Resampling(method=method, samples=200))
    assert (baseline.metric, baseline.p_value) == ("RIBES", None)
    assert like.p_value > 0.05
    assert worse.p_value < 0.01
    assert worse.interval[1] < baseline.interval[0]


def test_ter_and_several_references(texts):
    systems, references = texts
    resampling = Resampling(samples=20)
    found = compare(ter_metric(), systems, [references, systems["worse"]], resampling)
    assert [one.metric for one in found] == ["TER"] * 3
    assert found[2].score == 0
    assert found[0].signature.startswith("nrefs:2|bs:20|seed:12345|case:lc|")


@pytest.mark.parametrize("method", METHODS)
def test_a_copy_of_the_baseline_is_no_different(texts, method):
    systems, references = texts
    twice = {"one": systems["worse"], "two": systems["worse"]}
    resampling = Resampling(method=method, samples=50)
    assert compare(bleu_metric(), twice, [references], resampling)[1].p_value == 1
    assert compare_ribes(ribes_of(twice, references), resampling)[1].p_value == 1


def test_few_sentences_that_differ_prove_nothing():
    # Of two differences to the same side, half of all swaps leave them so, or turn both.
    same = [0.5] * 50
    scores = {
        "one": RibesScore(0.5, [*same, 0.1, 0.1], "nrefs:1|x"),
        "two": RibesScore(0.6, [*same, 0.9, 0.8], "nrefs:1|x"),
    }
    _, two = compare_ribes(scores, Resampling(method="randomisation", samples=2000))
    assert two.p_value == pytest.approx(0.5, abs=0.05)


def test_extremes_by_hand():
    scores = {
        "none": RibesScore(0, [0.0] * 30, "nrefs:1|x"),
        "all": RibesScore(1, [1.0] * 30, "nrefs:1|x"),
    }
    for method in METHODS:
        none, best = compare_ribes(scores, Resampling(method=method, samples=99))
        assert best.p_value == 1 / 100
        assert (none.interval, best.interval) == ((0, 0), (1, 1))


def test_interval_of_a_single_system():
    # The mean of 400 values with standard deviation 1/2: 1.96 * 0.5 / 20.
    scores = {"one": RibesScore(0.5, [0.0, 1.0] * 200, "nrefs:1|case:lc")}
    (one,) = compare_ribes(scores, Resampling(samples=4000))
    assert one.margin == pytest.approx(1.96 * 0.5 / math.sqrt(400), rel=0.1)
    assert one.mean == pytest.approx(0.5, abs=0.005)
    assert one.signature == "nrefs:1|bs:4000|seed:12345|case:lc"
    texts = {"one": ["a b c d e", "a b c x e", "f g h i j k"]}
    (one,) = compare(bleu_metric(), texts, [texts["one"]], Resampling(samples=50))
    assert (one.score, one.mean, one.margin, one.p_value) == (100, 100, pytest.approx(0), None)


def test_seed(texts):
    scores = ribes_of(*texts)
    for run in (
        lambda seed: compare(bleu_metric(), *texts_of(texts), Resampling(samples=30, seed=seed)),
        lambda seed: compare_ribes(scores, Resampling(samples=30, seed=seed)),
    ):
        assert run(1) == run(1)
        assert [one.mean for one in run(1)] != [one.mean for one in run(2)]


def texts_of(texts):
    systems, references = texts
    return systems, [references]


@pytest.mark.parametrize("before", [None, "none", "77"])
def test_the_environment_stays_as_it_was(monkeypatch, before):
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    if before is not None:
        monkeypatch.setenv("SACREBLEU_SEED", before)
    systems = {"one": ["a b c d"], "two": ["a b c e"]}
    found = compare(bleu_metric(), systems, [["a b c d"]], Resampling(samples=5, seed=3))
    assert "|seed:3|" in found[0].signature
    assert os.environ.get("SACREBLEU_SEED") == before


def test_json():
    scores = {"one": RibesScore(0.5, [0.5, 0.5], "nrefs:1|case:lc")}
    (one,) = compare_ribes(scores, Resampling(method="randomisation", samples=10))
    assert json.loads(json.dumps(one.to_dict())) == {
        "metric": "RIBES",
        "system": "one",
        "score": 0.5,
        "mean": 0.5,
        "interval": [0.5, 0.5],
        "p_value": None,
        "signature": "nrefs:1|bs:1000|ar:10|seed:12345|case:lc",
    }


@pytest.mark.parametrize("samples", [0, -3])
def test_too_few_resamples(samples):
    with pytest.raises(ValueError, match=rf"resamples must be at least 1, not {samples}$"):
        Resampling(samples=samples)


@pytest.mark.parametrize("seed", [0, -1])
def test_seed_too_small(seed):
    with pytest.raises(ValueError, match=rf"^the seed must be at least 1, not {seed}$"):
        Resampling(seed=seed)


def test_unequal_systems():
    with pytest.raises(DataError, match=r"^system two has 1 sentence, but one has 2$"):
        compare(bleu_metric(), {"one": ["a", "b"], "two": ["a"]}, [["a", "b"]], Resampling())
    with pytest.raises(DataError, match=r"^2 hypotheses, but 1 references$"):
        compare(bleu_metric(), {"one": ["a", "b"]}, [["a"]], Resampling())
    scores = {name: RibesScore(1, [1.0] * size, "x|y") for name, size in [("a", 3), ("b", 4)]}
    with pytest.raises(DataError, match=r"^system b has 4 sentences, but a has 3$"):
        compare_ribes(scores, Resampling())


def test_nothing_to_compare():
    with pytest.raises(ValueError, match=r"^no systems to compare: \{\}$"):
        compare_ribes({}, Resampling())
    with pytest.raises(ValueError, match=r"^no systems to compare: \{\}$"):
        compare(bleu_metric(), {}, [["a"]], Resampling())
