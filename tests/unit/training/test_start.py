"""Opening a training: what it is made of, and what it refuses before anything is made."""

from __future__ import annotations

import math

import pytest
import torch
from letters import PAIRS, begin, config_of, finish, make_corpus, small_model

from nmtflex.config import DeviceConfig
from nmtflex.errors import DataError, OptionError
from nmtflex.model.build import build_model
from nmtflex.training.progress import Progress


def test_a_trainer_is_complete_when_it_is_opened(corpus, data, tmp_path):
    trainer = begin(data, tmp_path / "run", updates=9, halve_from=3, plateau=2, lr=0.004, seed=5)
    assert trainer.progress == Progress(rate=0.004)
    assert (trainer.schedule.halve_from, trainer.schedule.plateau) == (3, 2)
    assert trainer.gradients.model is trainer.model
    assert trainer.gradients.largest is None
    assert trainer.notes == []
    order = trainer.gradients.batches.order(5, 1)
    assert [batch.tolist() for batch in trainer.order] == [batch.tolist() for batch in order]
    assert config_of(tmp_path / "run")["data"]["fingerprint"] == corpus.fingerprint


@pytest.mark.parametrize(("dtype", "fast", "noted"), [
    ("bfloat16", False, True), ("bfloat16", True, False), ("float32", False, False)
])  # fmt: skip
def test_bfloat16_is_noted_where_it_is_slow(data, tmp_path, monkeypatch, dtype, fast, noted):
    monkeypatch.setattr("nmtflex.training.start.has_fast_bfloat16", lambda: fast)
    trainer = begin(data, tmp_path / "run", device=DeviceConfig(device="cpu", dtype=dtype))
    assert ["bfloat16" in note and "float32" in note for note in trainer.notes] == [True] * noted


def test_its_weights_follow_from_the_seed_alone(data, tmp_path):
    opened = begin(data, tmp_path / "run", updates=1, seed=5).model
    torch.manual_seed(5)
    fresh = build_model(small_model(), 9, 9, 5).double()
    for name, weight in fresh.named_parameters():
        assert weight.equal(opened.get_parameter(name))


def test_a_run_goes_on_with_its_own_budget(tmp_path):
    """An epoch is too short for more than the least one, whatever memory there is."""
    corpus = make_corpus(tmp_path)
    trainer = begin(corpus.folder, tmp_path / "run", batch_tokens=-1, updates=1)
    assert trainer.gradients.batches.tokens == 256
    assert any("256" in note for note in trainer.notes)
    assert config_of(tmp_path / "run")["train"]["batch_tokens"] == 256
    del trainer
    begin(corpus.folder, tmp_path / "other", batch_tokens=99, updates=1)
    trainer = begin(corpus.folder, tmp_path / "other", batch_tokens=-1, updates=1)
    assert trainer.gradients.batches.tokens == 99


def test_batches_beyond_memory_are_cut_and_noted(data, tmp_path, monkeypatch):
    """Batches are cut from the pairs by width, which counts the target's end-of-sentence."""
    widths = sorted(len(line.split()) + 1 for line in PAIRS)
    sizes = [len(widths[n : n + 3]) * max(widths[n : n + 3]) for n in range(0, len(widths), 3)]
    asked = []

    def largest_piece(model, batches, largest, ranks, copies):
        assert copies == 2  # Adam's
        asked.append(largest)
        return 7

    monkeypatch.setattr("nmtflex.training.start.largest_piece", largest_piece)
    trainer = begin(data, tmp_path / "run", updates=1)
    assert asked == [max(sizes)]
    assert trainer.gradients.largest == 7
    (note,) = trainer.notes
    assert {"7", str(asked[0])} <= set(note.replace(":", "").split())


def test_thresholds_are_numbers_where_they_are_used(data, tmp_path):
    trainer = begin(data, tmp_path / "run", updates=1)
    assert trainer.gradients.tau == trainer.validator.tau == math.inf


def test_without_validation_data_a_note_says_so(tmp_path):
    corpus = make_corpus(tmp_path, valid=None)
    trainer = begin(corpus.folder, tmp_path / "run", updates=1)
    assert trainer.validator is None
    assert [str(corpus.folder) in note for note in trainer.notes] == [True]


@pytest.mark.parametrize(
    ("options", "flag"),
    [({"patience": 2}, "--patience"), ({"plateau": 2}, "--plateau"),
     ({"best_by": "perplexity"}, "--best-by perplexity")],
)  # fmt: skip
def test_what_counts_validations_needs_validation_data(tmp_path, options, flag):
    corpus = make_corpus(tmp_path, valid=None)
    with pytest.raises(OptionError, match=f"{flag}.*--valid"):
        begin(corpus.folder, tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_data_without_a_training_split_is_refused(data, tmp_path):
    corpus = make_corpus(tmp_path, train=None, like=data)
    with pytest.raises(DataError, match="--train"):
        begin(corpus.folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_tying_all_embeddings_needs_one_vocabulary(data, tmp_path):
    with pytest.raises(OptionError, match=r"\(9 and 9 entries\).*--joint"):
        begin(data, tmp_path / "run", model=small_model(tie_embeddings="all", bottleneck=5))
    corpus = make_corpus(tmp_path, joint=True)
    begin(
        corpus.folder,
        tmp_path / "run",
        model=small_model(tie_embeddings="all", bottleneck=5),
        updates=1,
    )


def test_a_model_beyond_memory_is_refused_before_anything_is_made(data, tmp_path):
    model = small_model(decoder_size=10_000_000)
    with pytest.raises(OptionError, match="40000000 x 10000008"):
        begin(data, tmp_path / "run", model=model, updates=1)
    assert not (tmp_path / "run").exists()


def test_a_run_goes_on_from_where_it_was(data, tmp_path):
    finish(begin(data, tmp_path / "run", updates=3))
    trainer = begin(data, tmp_path / "run", updates=6)
    progress = trainer.progress
    assert (progress.update, progress.epoch, progress.position) == (3, 1, 3)
    step = {state["step"].item() for state in trainer.optimizer.state.values()}
    assert step == {3.0}
