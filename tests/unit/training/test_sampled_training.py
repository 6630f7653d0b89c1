"""Training on segmentations that are drawn anew in each epoch."""

from __future__ import annotations

import pytest
import torch
from letters import begin, config_of, finish, make_corpus

from nmtflex.errors import OptionError

WORDS = ["abba cab", "cabbac a", "bac abba", "cabba", "abc cba bac", "bb aabb", "ccab bacca"]


@pytest.fixture(params=["unigram", "bpe"])
def sampled(request, tmp_path):
    """A corpus, and options for sampling from it."""
    options = {"sentencepiece": "12", "byte_fallback": False, "sentencepiece_type": request.param}
    corpus = make_corpus(tmp_path, WORDS, WORDS[:2], **options)
    sampling = {"subword_alpha": 0.2} if request.param == "unigram" else {"bpe_dropout": 0.3}
    return corpus.folder, sampling


def weights(trainer):
    return [weight.detach().clone() for weight in trainer.model.parameters()]


def test_a_resumed_training_is_the_unbroken_one(sampled, tmp_path):
    data, sampling = sampled
    whole = begin(data, tmp_path / "whole", updates=8, **sampling)
    finish(whole)
    part = begin(data, tmp_path / "part", updates=4, **sampling)
    finish(part)
    del part  # its run is locked
    again = begin(data, tmp_path / "part", updates=8, **sampling)
    assert 0 < again.progress.position < len(again.order)  # inside an epoch
    finish(again)
    assert again.progress.target_tokens == whole.progress.target_tokens
    for one, other in zip(weights(again), weights(whole), strict=True):
        assert one.equal(other)


def test_epochs_differ_and_the_seed_decides(sampled, tmp_path):
    data, sampling = sampled
    trainers = {
        name: begin(data, tmp_path / name, epochs=1, **options)
        for name, options in (("a", sampling), ("b", sampling), ("none", {}))
    }
    for trainer in trainers.values():
        finish(trainer)
    found = {name: weights(trainer) for name, trainer in trainers.items()}
    pairs = [(found["a"], found["b"]), (found["a"], found["none"])]
    same = [all(map(torch.equal, one, other)) for one, other in pairs]
    assert same == [True, False]


def test_the_gradient_is_the_mean_over_the_tokens_drawn(sampled, tmp_path):
    """The plan counts stored tokens; halving the batch changes nothing, as if they were those."""
    data, sampling = sampled
    trainer = begin(data, tmp_path / "run", epochs=1, batch_sentences=7, **sampling)
    gradients = trainer.gradients
    (pairs,) = trainer.order
    drawn = gradients.batches.collate(pairs).num_tokens
    assert drawn != gradients.batches.target_tokens([pairs])
    sums = gradients.of([pairs])
    assert sums.tokens == drawn
    found = [weight.grad.clone() for weight in trainer.model.parameters()]
    trainer.model.zero_grad()
    inputs = gradients.feed.take(pairs)
    loss = trainer.model.loss(inputs.source, inputs.lengths, inputs.target_in, inputs.target_out)
    (loss.objective / drawn).backward()
    for weight, grad in zip(trainer.model.parameters(), found, strict=True):
        torch.testing.assert_close(weight.grad, grad, rtol=1e-10, atol=1e-12)


def test_the_option_belongs_to_the_run_and_is_noted(sampled, tmp_path):
    data, sampling = sampled
    trainer = begin(data, tmp_path / "run", updates=1, **sampling)
    assert any(f"{trainer.gradients.batches.stretch:.2f}" in note for note in trainer.notes)
    (name, value), *_ = sampling.items()
    assert config_of(tmp_path / "run")["train"][name] == value
    del trainer  # its run is locked
    with pytest.raises(OptionError, match=f"--{name.replace('_', '-')} was {value}"):
        begin(data, tmp_path / "run", updates=1)


def test_options_without_effect_make_no_run(tmp_path):
    corpus = make_corpus(tmp_path)
    with pytest.raises(OptionError, match=r"--bpe-dropout 0\.1"):
        begin(corpus.folder, tmp_path / "run", updates=1, bpe_dropout=0.1)
    assert not (tmp_path / "run").exists()
