"""Scores of words: the file, what it gives, and that nothing else changes them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import nmtflex
from nmtflex.config import AttentionConfig, GlobalConfig, NoneConfig
from nmtflex.decoding.confidence import Confidence, read_confidence
from nmtflex.decoding.logistic import Logistic
from nmtflex.decoding.translator import Translator
from nmtflex.decoding.word_features import feature_names
from nmtflex.errors import OptionError, RunError
from nmtflex.runs.folder import RunFolder
from nmtflex.runs.weights import digest_of

CPU = {"device": "cpu", "threads": 1, "dtype": "float64"}
LINES = ["a b c", "", "h g f e d c b a", "日本 ?", "c c c c c", "b"]
KINDS = AttentionConfig.variants()


def invented(attending: bool, seed: int = 1) -> Confidence:
    draw = np.random.default_rng(seed)
    count = len(feature_names(attending))
    model = Logistic(0.3, draw.normal(size=count), draw.normal(size=count), draw.random(count) + 1)
    return Confidence(model, 0.25 if attending else None, [], {"split": "valid", "beam": 5})


def calibrated(run, attending: bool = True):
    confidence = invented(attending)._replace(weights=[digest_of(RunFolder(run).best)])
    confidence.save(RunFolder(run).confidence)
    return confidence


@pytest.mark.parametrize("attending", [True, False])
def test_the_file_keeps_every_bit(tmp_path, attending) -> None:
    confidence = invented(attending)._replace(weights=["ab", "cd"])
    path = tmp_path / "confidence.json"
    confidence.save(path)
    found = read_confidence([], ["ab", "cd"], path)
    assert (found.bound, found.weights) == (confidence.bound, confidence.weights)
    assert found.about == confidence.about
    assert found.model.bias == confidence.model.bias
    for one, two in zip(found.model[1:], confidence.model[1:], strict=True):
        assert one.tolist() == two.tolist()


DAMAGES = {
    "newer": (lambda file: file.update(format=7), "format 7"),
    "no format": (lambda file: file.pop("format"), "format None"),
    "no bias": (lambda file: file.pop("bias"), "bias"),
    "a word": (lambda file: file.update(bias="x"), "'x'"),
    "a number that is none": (lambda file: file.update(bound=float("nan")), "nan"),
    "a number beyond all": (lambda file: file.update(bias=10**400), "damaged"),
    "a feature less": (lambda file: file["features"].pop("place"), "features"),
    "a list": (lambda file: file.update(features=[1]), "damaged"),
    "no scale": (lambda file: file["features"]["place"].update(scale=0), "scale is 0"),
    "another run": (lambda file: file.update(weights=["ef"]), "other weights"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_file_of_no_use_names_the_remedy(tmp_path, name) -> None:
    path = tmp_path / "confidence.json"
    invented(True)._replace(weights=["ab"]).save(path)
    file = json.loads(path.read_text())
    damage, value = DAMAGES[name]
    damage(file)
    path.write_text(json.dumps(file))
    with pytest.raises(RunError) as caught:
        read_confidence([tmp_path / "run"], ["ab"], path)
    for words in (str(path), value, f"nmtflex calibrate {tmp_path / 'run'}"):
        assert words in str(caught.value)


def test_a_cut_file_names_the_remedy(tmp_path) -> None:
    path = tmp_path / "confidence.json"
    path.write_text('{"format": 1')
    with pytest.raises(RunError, match=r"not valid JSON.*nmtflex calibrate run"):
        read_confidence([Path("run")], ["ab"], path)


def test_without_a_file(make_tiny_run) -> None:
    run = make_tiny_run("run", GlobalConfig())
    translator = nmtflex.load(run, **CPU)
    translator.translate(LINES)
    with pytest.raises(RunError, match=f"nmtflex calibrate {run}"):
        translator.n_best(LINES, 1, word_scores=True)


def test_models_of_no_run(make_tiny_run) -> None:
    loaded = nmtflex.load(make_tiny_run("run", GlobalConfig()), **CPU)
    with pytest.raises(RunError, match=r"nmtflex\.load"):
        Translator(loaded._models, loaded.pipeline).n_best(["a"], 1, word_scores=True)


def test_a_single_head_is_not_what_was_calibrated(make_layered_run) -> None:
    run = make_layered_run("run", GlobalConfig())
    calibrated(run)
    with pytest.raises(OptionError, match="head"):
        nmtflex.load(run, head=1, **CPU).n_best(["a"], 1, word_scores=True)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("kind", "decoder"),
    [*((kind, "bahdanau") for kind in KINDS), ("none", "ssru"), ("global", "transformer")],
)
def test_scores_depend_on_the_sentence_alone(make_tiny_run, kind, decoder) -> None:
    sizes = {"embedding_size": 8, "encoder_size": 8, "decoder_size": 8}
    run = make_tiny_run("run", KINDS[kind](), decoder=decoder, **sizes)
    translator = nmtflex.load(run, **CPU)
    calibrated(run, translator.aligned)
    together = translator.n_best(LINES, 3, word_scores=True)
    plain = translator.n_best(LINES, 3)
    backwards = translator.n_best(LINES[::-1], 3, word_scores=True)[::-1]
    alone = [translator.n_best([line], 3, word_scores=True)[0] for line in LINES]
    for several, *others in zip(together, plain, backwards, alone, strict=True):
        for one, bare, *same in zip(several, *others, strict=True):
            unscored = {"word_scores": (), "confidence": None, "unaligned": None}
            assert one._replace(**unscored) == bare
            assert len(one.word_scores) == len(one.words)
            assert all(0 <= score <= 1 for score in one.word_scores)
            for other in same:
                assert other.word_scores == pytest.approx(one.word_scores, abs=1e-9)
                assert other.unaligned == one.unaligned
            if one.words:
                assert one.confidence == pytest.approx(sum(one.word_scores) / len(one.words))
                assert (one.unaligned is None) == (kind == NoneConfig.kind)
            else:
                assert (one.confidence, one.unaligned) == (None, None)
    assert sum(len(several[0].words) for several in together) > len(LINES)


def test_scores_follow_from_the_model(make_tiny_run) -> None:
    run = make_tiny_run("run", GlobalConfig())
    confidence = calibrated(run)
    translator = nmtflex.load(run, **CPU)
    [[best]] = translator.n_best(["h g f e d c b a"], 1, word_scores=True)
    [features] = translator.word_features(["h g f e d c b a"], [best])
    model = confidence.model
    for row, score in zip(features.rows(), best.word_scores, strict=True):
        standard = [
            (value - mean) / scale
            for value, mean, scale in zip(row, model.mean, model.scale, strict=True)
        ]
        logit = model.bias + sum(a * b for a, b in zip(model.weights, standard, strict=True))
        assert score == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-12)


def test_replaced_words_each_have_a_score(make_tiny_run) -> None:
    run = make_tiny_run("run", GlobalConfig())
    calibrated(run)
    translator = nmtflex.load(run, replace_unk=True, **CPU)
    for seed in range(3):
        lines = [f"{word} x{seed} a" for word in "abcdefgh"]
        for (one,) in translator.n_best(lines, 1, word_scores=True):
            assert len(one.word_scores) == len(one.words)


def test_an_ensemble_needs_a_calibration_of_its_own(make_tiny_run) -> None:
    runs = [make_tiny_run("one", GlobalConfig()), make_tiny_run("two", NoneConfig(), seed=2)]
    calibrated(runs[0])
    together = nmtflex.load(runs, **CPU)
    with pytest.raises(RunError, match=f"nmtflex calibrate {runs[0]} {runs[1]}"):
        together.n_best(["a"], 1, word_scores=True)
    digests = [digest_of(RunFolder(run).best) for run in runs]
    invented(True)._replace(weights=digests).save(RunFolder(runs[0]).confidence)
    [[best]] = nmtflex.load(runs, **CPU).n_best(["a b"], 1, word_scores=True)
    assert len(best.word_scores) == len(best.words)


@pytest.mark.parametrize("seed", range(20))
def test_unaligned_words_by_a_loop(seed) -> None:
    draw = np.random.default_rng(seed)
    weights = draw.dirichlet(np.full(3, 0.5), size=9)
    taken, unaligned = [0, 0, 0], 0
    for row in weights.tolist():
        place = row.index(max(row))
        unaligned += max(row) < 0.5 or taken[place] >= 3
        taken[place] += 1
    confidence = invented(True)._replace(bound=0.5)
    assert confidence.unaligned(weights) == pytest.approx(unaligned / 9)
    assert confidence.unaligned(None) is None
