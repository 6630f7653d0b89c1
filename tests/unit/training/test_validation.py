"""What a validation costs at most, and what it shows while it lasts."""

from __future__ import annotations

import pytest
import torch

from nmtflex.config import GlobalConfig, ModelConfig, PreprocessConfig
from nmtflex.corpus.prepare import prepare
from nmtflex.model.seq2seq import build_model
from nmtflex.text.vocabulary import EOS_ID
from nmtflex.training.validation import Validator

SOURCES = ["a b c d e f g h", "a", "b c", "", "d e f"] * 30
TARGETS = ["A", "A B C D E F", "B", "C", ""] * 30


@pytest.fixture
def corpus(tmp_path):
    for split in ("train", "valid"):
        for language, lines in (("lo", SOURCES), ("up", TARGETS)):
            (tmp_path / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines))
    splits = {"train": [tmp_path / "train"], "valid": tmp_path / "valid"}
    options = {"source_lang": "lo", "target_lang": "up", "out": tmp_path / "prepared"}
    return prepare(PreprocessConfig(**options, **splits))


@pytest.fixture
def endless(corpus):
    """A model that goes on as long as it may."""
    sizes = (len(side.vocabulary) for side in (corpus.pipeline.source, corpus.pipeline.target))
    torch.manual_seed(3)
    config = ModelConfig.from_flat(
        attention=GlobalConfig(), embedding_size=5, encoder_size=4, decoder_size=6
    )
    model = build_model(config, *sizes, 8)
    with torch.no_grad():
        model.output.projection.bias[EOS_ID] = -1000.0
    return model


def test_a_translation_is_cut_at_twice_its_reference_and_ten_more(corpus, endless, monkeypatch):
    validator = Validator(corpus, beam=2, batch_tokens=256)
    seen = {}

    def bleu(hypotheses):
        seen["lengths"] = [len(words) for words in hypotheses]
        return 0.0, ""

    monkeypatch.setattr(validator, "_bleu", bleu)
    validator(endless, lambda: None)
    bounds = [
        # Nor is it longer than the search allows; an empty source has an empty translation.
        min(2 * len(target.split()) + 10, 3 * len(source.split()) + 20) if source else 0
        for source, target in zip(SOURCES, TARGETS, strict=True)
    ]
    assert seen["lengths"] == bounds


def test_a_validation_counts_its_sentences_and_looks_at_signals(corpus, endless):
    validator = Validator(corpus, beam=1, batch_tokens=256)
    shown, looks = [], []
    validator(endless, lambda: looks.append(1), lambda *numbers: shown.append(numbers))
    assert shown[0] == (0, 150)
    assert shown[-1] == (120, 150)  # 30 have no source and need no search
    assert [done for done, _ in shown] == sorted({done for done, _ in shown})
    assert len(shown) == 3  # batches of 64 at most
    assert len(looks) > len(shown)
