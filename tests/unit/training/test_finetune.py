"""Opening a finetuning: what follows from the base run, and what it refuses."""

from __future__ import annotations

import math
import shutil

import pytest
from letters import CPU, begin, config_of, finish, make_corpus, small_model
from safetensors.torch import load_file

from nmtflex.config import AdamWConfig, FinetuneConfig, FlexibleConfig, MemoryConfig, SGDConfig
from nmtflex.errors import DataError, OptionError, RunError
from nmtflex.training.finetune import open_finetuning

MEAN = (2 + 4 + 1) / 3  # tokens of the validation sources


@pytest.fixture(scope="module")
def bases(corpus, tmp_path_factory):
    """Return runs of one update by kind of attention."""
    folder = tmp_path_factory.mktemp("bases")
    kinds = {"flexible": FlexibleConfig(), "memory": MemoryConfig(K=3), "global": None}
    for kind, attention in kinds.items():
        model = small_model(attention=attention) if attention else small_model()
        loop = {"updates": 5, "halve_from": 2, "lr": 0.004}
        batch = {"batch_tokens": 20} if kind == "memory" else {}
        finish(begin(corpus.folder, folder / kind, device=CPU, model=model, **loop, **batch))
    return folder


@pytest.fixture
def tune(bases, tmp_path):
    def run(kind, name="tuned", **options):
        usual = {"base_run": bases / kind, "run": tmp_path / name, "updates": 2, "valid_beam": 1}
        return open_finetuning(FinetuneConfig(**{**usual, "log_every": 1, **options}), CPU)

    return run


def test_it_begins_with_the_best_weights_and_a_fresh_optimiser(tune, bases):
    trainer = tune("flexible")
    best = load_file(bases / "flexible" / "checkpoints" / "best.safetensors")
    for name, weight in trainer.model.named_parameters():
        assert weight.equal(best[name])
    assert trainer.optimizer.state == {}
    assert trainer.progress.validated_update == -1  # the start is to be validated


def test_what_is_not_given_follows_from_the_base_run(tune, data):
    """The fifth update is in the second epoch, where the rate is halved."""
    trainer = tune("flexible")
    found = config_of(trainer.folder.path)["train"]
    assert found["data"] == str(data)
    assert (found["beta"], found["tau"], found["train_tau"]) == (0.1, "auto", None)
    assert (found["lr"], trainer.progress.rate) == (0.002, 0.002)
    assert (found["batch_sentences"], found["batch_tokens"]) == (3, None)
    assert trainer.gradients.beta == 0.1
    assert trainer.gradients.tau == math.inf
    assert trainer.validator.tau == pytest.approx(math.log10(MEAN))

    found = config_of(tune("memory", "other").folder.path)["train"]
    assert (found["beta"], found["tau"], found["lr"]) == (0.0, None, 0.002)
    assert (found["batch_sentences"], found["batch_tokens"]) == (None, 20)


def test_what_is_given_is_used(tune):
    trainer = tune("flexible", tau="0.5", train_tau="0.25", beta=2.0, lr=0.01, batch_tokens=30)
    assert (trainer.validator.tau, trainer.gradients.tau, trainer.gradients.beta) == (0.5, 0.25, 2)
    assert trainer.progress.rate == 0.01
    assert trainer.gradients.batches.tokens == 30


def test_a_remainder_is_turned_on_and_off(tune, tmp_path):
    """It has no weights, so a run with it can begin with one that has none."""
    without, turned = tune("flexible"), tune("flexible", "with", remainder=True)
    assert not config_of(without.folder.path)["model"]["attention"]["remainder"]
    assert config_of(turned.folder.path)["model"]["attention"]["remainder"]
    finish(turned)
    for given, expected in ((None, True), (False, False), (True, True)):
        again = tune("flexible", str(given), base_run=tmp_path / "with", remainder=given)
        assert config_of(again.folder.path)["model"]["attention"]["remainder"] is expected


def test_the_rate_of_another_optimiser_is_not_taken(tune, bases):
    with pytest.raises(OptionError, match=f"{bases / 'flexible'} .*--optimizer adam.* sgd"):
        tune("flexible", optimizer=SGDConfig())
    assert tune("flexible", optimizer=SGDConfig(), lr=0.5).progress.rate == 0.5
    assert tune("flexible", "other", optimizer=AdamWConfig()).progress.rate == 0.002


def test_frozen_weights_have_no_average(tune):
    trainer = tune("flexible", freeze=["encoder.*"], ema=0.9, updates=2)
    finish(trainer)
    averaged = set(trainer.optimizer.average.values)
    assert averaged == {w for w in trainer.model.parameters() if w.requires_grad}


def test_frozen_weights_are_left_to_no_optimiser(tune):
    trainer = tune("flexible", freeze=["encoder.*"])
    trained = {id(weight) for weight in trainer.optimizer.weights}
    for name, weight in trainer.model.named_parameters():
        assert (id(weight) in trained) == weight.requires_grad == (not name.startswith("encoder."))


def test_frozen_weights_stay_and_others_change(tune, bases):
    trainer = tune("flexible", freeze=["encoder.*"])
    finish(trainer)
    before = load_file(bases / "flexible" / "checkpoints" / "best.safetensors")
    for name, weight in trainer.model.named_parameters():
        if name.startswith("encoder."):
            assert weight.equal(before[name])
    assert any(not weight.equal(before[name]) for name, weight in trainer.model.named_parameters())


def test_memory_keeps_the_longest_source_it_was_made_for(tune, data, tmp_path):
    """Position encodings are of that length; those of longer new data would be another model's."""
    longer = make_corpus(tmp_path, train=["a b c d e a b c d e"], like=data).folder
    trainer = tune("memory", data=longer)
    assert config_of(trainer.folder.path)["data"]["longest_source"] == 5
    finish(trainer)


@pytest.mark.parametrize(
    ("options", "value"),
    [({"beta": 0.5}, "--beta 0.5"), ({"tau": "1.2"}, "--tau 1.2"), ({"tau": "inf"}, "--tau inf"),
     ({"train_tau": "0.5"}, "--train-tau 0.5"), ({"remainder": True}, "--remainder"),
     ({"remainder": False}, "--no-remainder")],
)  # fmt: skip
def test_what_needs_a_gate_is_refused_without_one(tune, bases, tmp_path, options, value):
    with pytest.raises(OptionError, match=f"{value} .*{bases / 'global'} .*global"):
        tune("global", **options)
    assert not (tmp_path / "tuned").exists()


def test_a_run_is_not_finetuned_into_itself(tune, bases):
    with pytest.raises(OptionError, match=r"memory/\.\./flexible"):
        tune("flexible", run=bases / "memory" / ".." / "flexible")


def test_data_of_another_vocabulary_is_refused(tune, bases, tmp_path):
    strange = make_corpus(tmp_path, train=["x y", "z"], valid=["x"]).folder
    with pytest.raises(DataError, match=f"{strange} .*--like {bases / 'flexible'}"):
        tune("flexible", data=strange)


def test_a_run_goes_on_from_its_own_base_alone(tune, bases, tmp_path):
    finish(tune("flexible", lr=0.001))
    with pytest.raises(OptionError, match=str(tmp_path / "tuned")):
        tune("global", lr=0.001, updates=4)
    trainer = tune("flexible", lr=0.001, updates=4)
    assert trainer.progress.update == 2


def test_a_base_without_checkpoints_needs_a_rate(tune, bases, tmp_path):
    base = tmp_path / "base"
    shutil.copytree(bases / "global", base)
    for checkpoint in (base / "checkpoints").glob("update-*"):
        shutil.rmtree(checkpoint)
    with pytest.raises(RunError, match=f"{base} .*--lr"):
        tune("global", base_run=base)
    assert tune("global", base_run=base, lr=0.001).progress.rate == 0.001


def test_without_validation_data_no_threshold_is_needed(tune, data, tmp_path):
    unjudged = make_corpus(tmp_path, valid=None, like=data).folder
    trainer = tune("flexible", data=unjudged)
    assert trainer.validator is None
    assert config_of(trainer.folder.path)["train"]["tau"] is None
    with pytest.raises(OptionError, match="--tau auto"):
        tune("flexible", "other", data=unjudged, tau="auto")
    assert not (tmp_path / "other").exists()
