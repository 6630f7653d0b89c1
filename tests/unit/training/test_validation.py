"""A validation: its scores, what it costs at most, and what it shows while it lasts."""

from __future__ import annotations

import math

import pytest
import sacrebleu
import torch
from letters import CPU, SIZES, VALID, make_corpus

from nmtflex.attention import UNLIMITED, Limits
from nmtflex.config import BatchConfig, FlexibleConfig, GlobalConfig, ModelConfig, SearchConfig
from nmtflex.decoding.tally import Tally
from nmtflex.decoding.translator import Translator
from nmtflex.errors import DataError
from nmtflex.model.build import build_model
from nmtflex.runs.device import open_device
from nmtflex.text.vocabulary import BOS_ID, EOS_ID
from nmtflex.training import validation
from nmtflex.training.validation import Validator

SOURCES = ["a b c d e f g h", "a", "b c", "", "d e f"] * 30
TARGETS = ["A", "A B C D E F", "B", "C", ""] * 30


@pytest.fixture
def uneven(tmp_path):
    """Sources and targets of other lengths, some of them empty."""
    return make_corpus(tmp_path, train=SOURCES, valid=SOURCES, targets=TARGETS)


def make_model(corpus, attention=None, seed=3):
    sizes = (len(side.vocabulary) for side in (corpus.pipeline.source, corpus.pipeline.target))
    torch.manual_seed(seed)
    open_device(CPU)
    config = ModelConfig.from_flat(attention=attention or GlobalConfig(), **SIZES)
    model = build_model(config, *sizes, 8)
    for weight in model.parameters():
        weight.data.normal_(std=0.7)
    return model


@pytest.fixture
def endless(uneven):
    """A model that goes on as long as it may."""
    model = make_model(uneven)
    with torch.no_grad():
        model.output.projection.bias[EOS_ID] = -1000.0
    return model


def one_by_one(corpus, model, limits=UNLIMITED):
    """Return the cross-entropy a token and the mean gate, from a sentence at a time."""
    source, target = corpus.store("valid", "source"), corpus.store("valid", "target")
    total = tokens = gates = count = 0
    for number in range(len(source)):
        words = [int(word) for word in target[number]]
        ids = torch.tensor([source[number].tolist()])
        if not ids.numel():
            continue
        with torch.no_grad():
            loss = model.loss(
                ids,
                torch.tensor([ids.shape[1]]),
                torch.tensor([[BOS_ID, *words]]),
                torch.tensor([[*words, EOS_ID]]),
                limits=limits,
            )
        total += float(loss.cross_entropy)
        tokens += len(words) + 1
        gates += float(loss.gate) if loss.gate is not None else 0
        count += 1
    return total / tokens, gates / count


def test_scores_are_those_of_sentences_one_by_one(uneven):
    model = make_model(uneven).eval()
    found = Validator(uneven, beam=2, batch_tokens=64)(model, lambda: None)
    loss, _ = one_by_one(uneven, model)
    assert found.loss == pytest.approx(loss, rel=1e-5)
    assert found.perplexity == pytest.approx(math.exp(loss), rel=1e-4)
    assert found.gate is None
    # Global attention scores every position of a source at each step.
    assert 1 <= found.cps <= 8


@pytest.mark.sampled(3)
@pytest.mark.parametrize("tau", [math.inf, 0.3, 0.0])
def test_a_threshold_is_that_of_the_validation(uneven, tau):
    model = make_model(uneven, FlexibleConfig()).eval()
    validator = Validator(uneven, beam=1, batch_tokens=64, tau=tau)
    found = validator(model, lambda: None)
    assert validator(model, lambda: None)[:6] == found[:6]
    loss, gate = one_by_one(uneven, model, Limits(tau))
    assert found.loss == pytest.approx(loss, rel=1e-5)
    assert found.gate == pytest.approx(gate, rel=1e-5)
    tally = Tally()
    translator = Translator(
        [model.limited(Limits(tau))], uneven.pipeline, SearchConfig(beam=1), BatchConfig()
    )
    limits = [2 * len(line.split()) + 10 for line in TARGETS]
    sources = [uneven.store("valid", "source")[n].tolist() for n in range(len(SOURCES))]
    translator.translate_ids(sources, tally, 1, limits)
    assert found.cps == tally.cps
    if tau == 0:
        assert found.cps == 1


def test_bleu_is_sacrebleus_of_what_is_translated(corpus):
    model = make_model(corpus)
    found = Validator(corpus, beam=1, batch_tokens=64)(model, lambda: None)
    assert [sample.source for sample in found.samples] == VALID
    assert [sample.reference for sample in found.samples] == [line.upper() for line in VALID]
    translations = [sample.translation for sample in found.samples]
    references = [[line.upper() for line in VALID]]
    expected = sacrebleu.corpus_bleu(
        translations, references, tokenize="none", smooth_method="none"
    )
    assert found.bleu == pytest.approx(expected.score)
    assert "tok:none" in found.signature


def test_a_translation_is_cut_at_twice_its_reference_and_ten_more(uneven, endless, monkeypatch):
    validator = Validator(uneven, beam=2, batch_tokens=256)
    true_bleu, seen = validation.run_bleu, []

    def run_bleu(target, hypotheses, references):
        seen.extend(len(words) for words in hypotheses)
        return true_bleu(target, hypotheses, references)

    monkeypatch.setattr(validation, "run_bleu", run_bleu)
    validator(endless, lambda: None)
    bounds = [
        # Nor is it longer than the search allows; an empty source has an empty translation.
        min(2 * len(target.split()) + 10, 3 * len(source.split()) + 20) if source else 0
        for source, target in zip(SOURCES, TARGETS, strict=True)
    ]
    assert seen == bounds


def test_a_validation_counts_its_sentences_and_looks_at_signals(uneven, endless):
    validator = Validator(uneven, beam=1, batch_tokens=256)
    shown, looks = [], []
    validator(endless, lambda: looks.append(1), lambda *numbers: shown.append(numbers))
    assert shown[0] == (0, 150)
    assert shown[-1] == (120, 150)  # 30 have no source and need no search
    assert [done for done, _ in shown] == sorted({done for done, _ in shown})
    assert len(shown) == 3  # batches of 64 at most
    assert len(looks) > len(shown)


def test_a_split_of_empty_sources_is_refused(tmp_path):
    corpus = make_corpus(tmp_path, train=["a", "b"], valid=["", ""], targets=["A", "B"])
    with pytest.raises(DataError, match=str(corpus.folder)):
        Validator(corpus, beam=1, batch_tokens=64)
