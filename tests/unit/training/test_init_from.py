"""A training begins with the weights of another run wherever names and shapes agree."""

from __future__ import annotations

import pytest
from letters import CPU, begin, config_of, finish, make_corpus, small_model
from safetensors.torch import load_file

from nmtflex.config import FlexibleConfig, GlobalConfig, LocalPConfig, MemoryConfig, NoneConfig
from nmtflex.errors import DataError, OptionError, RunError
from nmtflex.runs.folder import RunFolder
from nmtflex.runs.origin import start_of
from nmtflex.training.made_by import maker_of

GATE = "decoder.attention.gate"


@pytest.fixture(scope="module")
def first(corpus, tmp_path_factory):
    """A run of five updates with global attention."""
    run = tmp_path_factory.mktemp("first") / "run"
    finish(begin(corpus.folder, run, device=CPU, updates=5))
    return run


@pytest.fixture
def start(data, first, tmp_path):
    """Open a training that begins with ``first``."""

    def run(name="second", attention=None, corpus=data, sizes=None, **options):
        model = small_model(attention=attention or FlexibleConfig(), **(sizes or {}))
        loop = {"init_from": first, "updates": 2, **options}
        return begin(corpus, tmp_path / name, device=CPU, model=model, **loop)

    return run


def weights_of(run):
    return load_file(RunFolder(run).best)


def test_shared_weights_are_taken_and_a_note_names_the_others(start, first):
    trainer = start()
    before = weights_of(first)
    own = dict(trainer.model.named_parameters())
    assert {name for name in own if name not in before} == {
        name for name in own if name.startswith(GATE)
    }
    for name, weight in own.items():
        if name in before:
            assert weight.equal(before[name])
    taken = sum(weight.numel() for weight in before.values())
    size = sum(weight.numel() for weight in own.values())
    (note,) = (line for line in trainer.notes if str(first) in line)
    assert f"{taken:,} of {size:,} " in note
    assert note.endswith(f": {GATE}")
    assert trainer.progress.validated_update == -1  # the start is to be validated


def test_the_same_model_takes_all(start, first):
    trainer = start(attention=GlobalConfig())
    assert not any(str(first) in line for line in trainer.notes)
    for name, weight in trainer.model.named_parameters():
        assert weight.equal(weights_of(first)[name])


def test_weights_of_other_shapes_begin_at_random(start, first):
    trainer = start(attention=GlobalConfig(), sizes={"decoder_size": 7})
    before, own = weights_of(first), dict(trainer.model.named_parameters())
    same = {name for name, weight in own.items() if weight.shape == before[name].shape}
    assert same
    assert same < own.keys()
    assert all(own[name].equal(before[name]) for name in same)


@pytest.mark.parametrize(
    "attention", [FlexibleConfig(), MemoryConfig(K=3), LocalPConfig(window=2), NoneConfig()]
)
def test_every_mechanism_trains_on(start, attention):
    trainer = start(attention=attention)
    finish(trainer)
    assert trainer.progress.update == 2


def test_the_run_is_one_of_train_that_goes_on(start, first, tmp_path):
    finish(start())
    config = config_of(tmp_path / "second")
    assert maker_of(config) == "train"
    assert config["train"]["init_from"] == str(first)
    assert start_of(RunFolder(tmp_path / "second")).update == 5
    with pytest.raises(OptionError, match=f"{tmp_path / 'second'} .*random"):
        start(updates=4, init_from=None)
    trainer = start(updates=4)
    assert trainer.progress.update == 2
    assert not any(str(first) in line for line in trainer.notes)


def test_a_run_that_began_at_random_takes_no_weights(start, first, tmp_path):
    finish(start(init_from=None))
    with pytest.raises(OptionError, match=f"{tmp_path / 'second'} .*{first}"):
        start(updates=4)


def test_a_run_of_other_sizes_is_refused(start, first, tmp_path):
    sizes = {"embedding_size": 8, "encoder_size": 8, "decoder_size": 8}
    modern = {"encoder": "transformer", "decoder": "ssru", "encoder_heads": 2, "decoder_heads": 2}
    with pytest.raises(OptionError, match=rf"{first} .*--config {first}/config.json"):
        start(sizes={**sizes, **modern})
    assert not (tmp_path / "second").exists()


def test_data_of_another_vocabulary_is_refused(start, first, tmp_path):
    strange = make_corpus(tmp_path, train=["x y", "z"], valid=["x"]).folder
    with pytest.raises(DataError, match=f"{strange} .*--like {first}"):
        start(corpus=strange)


def test_a_run_does_not_begin_with_itself(data, first):
    with pytest.raises(OptionError, match=str(first)):
        begin(data, first, device=CPU, init_from=first)


def test_what_is_no_run_is_refused(start, tmp_path):
    with pytest.raises(RunError, match=str(tmp_path / "nothing")):
        start(init_from=tmp_path / "nothing")
