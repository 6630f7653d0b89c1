"""Options of two families stay while one has them; defaults that depend on other kinds."""

from __future__ import annotations

import json
import tomllib

import pytest
from toy_command import complaint

from nmtflex.config import ModelConfig

CELL = "cell = 'gru'\ndecoder = 'luong'\nencoder = 'recurrent'\n"
NORM = "pre-norm = true\nffn-dropout = 0.25\ndecoder = 'ssru'\nencoder = 'transformer'\n"
BOTH = "attention-dropout = 0.25\ndecoder = 'transformer'\nencoder = 'transformer'\n"
SHARED = ("cell", "pre-norm", "ffn-dropout", "attention-dropout")


@pytest.fixture
def train(command_line, tmp_path):
    """Return the tables that --print-config prints for a file and flags, and the notes."""

    def read(text: str, *flags: object) -> tuple[dict, str]:
        path = tmp_path / "options.toml"
        path.write_text(text, encoding="utf-8")
        outcome = command_line("train", "-c", path, *flags, "--print-config")
        assert outcome.code == 0, outcome.err
        return tomllib.loads(outcome.out), outcome.err

    return read


@pytest.mark.parametrize(
    ("text", "encoder", "decoder", "kept", "dropped"),
    [
        (CELL, "transformer", "luong", {"decoder": {"cell": "gru"}}, ""),
        (CELL, "recurrent", "bahdanau", {"encoder": {"cell": "gru"}}, ""),
        (CELL, "recurrent", "ssru", {"encoder": {"cell": "gru"}}, ""),
        (CELL, "recurrent", "transformer", {"encoder": {"cell": "gru"}}, ""),
        (CELL, "transformer", "ssru", {}, "--decoder ssru overrides cell"),
        (CELL, "transformer", "transformer", {}, "--decoder transformer overrides cell"),
        (NORM, "recurrent", "ssru", {"decoder": {"pre-norm": True, "ffn-dropout": 0.25}}, ""),
        (NORM, "transformer", "luong", {"encoder": {"pre-norm": True, "ffn-dropout": 0.25}}, ""),
        (NORM, "transformer", "transformer", {"decoder": {"pre-norm": True}}, ""),
        (NORM, "recurrent", "luong", {}, "overrides ffn-dropout and pre-norm"),
        (NORM, "recurrent", "transformer", {"decoder": {"pre-norm": True}}, ""),
        (BOTH, "transformer", "ssru", {"encoder": {"attention-dropout": 0.25}}, ""),
        (BOTH, "recurrent", "transformer", {"decoder": {"attention-dropout": 0.25}}, ""),
        (BOTH, "recurrent", "ssru", {}, "overrides attention-dropout"),
    ],
)
def test_an_option_stays_while_a_family_has_it(train, text, encoder, decoder, kept, dropped):
    found, err = train(text, "--encoder", encoder, "--decoder", decoder)
    assert (found["encoder"]["kind"], found["decoder"]["kind"]) == (encoder, decoder)
    for table, options in kept.items():
        assert found[table] | options == found[table]
    if not kept:
        given = tomllib.loads(text)
        shared = [key for key in SHARED if key in given]
        assert [
            key
            for table in ("encoder", "decoder")
            for key in shared
            if found[table].get(key) == given[key]
        ] == []
        keys = dropped.rpartition("overrides ")[2].split(" and ")
        assert [key for key in keys if key not in err] == []
    assert ("--config" in err, err.count("\n")) == (bool(dropped), int(bool(dropped)))


def test_a_shared_option_of_a_kind_that_a_flag_alone_selects(train):
    """The file has no kind; the flags' encoder and decoder have no cell."""
    assert train("cell = 'gru'\n", "--encoder", "transformer")[0]["decoder"]["cell"] == "gru"


def test_and_an_error_if_no_kind_has_it(command_line, tmp_path):
    path = tmp_path / "options.toml"
    path.write_text("cell = 'gru'\n")
    flags = ("--encoder", "transformer", "--decoder", "ssru")
    message = complaint(command_line, "train", "-c", path, *flags, "--print-config")
    assert message.startswith("--cell belongs to --encoder recurrent")
    assert message.endswith(f"; --config {path} sets --cell")


def test_sizes_of_layers_follow_the_embeddings(train):
    text = "embedding-size = 64\nencoder = 'transformer'\ndecoder = 'ssru'\n"
    found, _ = train(text)
    assert (found["encoder"]["encoder-size"], found["decoder"]["decoder-size"]) == (64, 64)
    found, _ = train(text, "--embedding-size", "32", "--decoder", "luong")
    assert (found["encoder"]["encoder-size"], found["decoder"]["decoder-size"]) == (32, 256)
    found, _ = train(text, "--encoder", "recurrent")
    assert (found["encoder"]["encoder-size"], found["decoder"]["decoder-size"]) == (256, 64)


def test_the_usual_score_and_the_one_that_is_given(train):
    ssru = "decoder = 'ssru'\n"
    assert train(ssru)[0]["attention"]["score"] == "dot"
    assert train(ssru, "--decoder", "luong")[0]["attention"]["score"] == "additive"
    assert train(ssru + "score = 'general'")[0]["attention"]["score"] == "general"
    assert train("score = 'additive'", "--decoder", "ssru")[0]["attention"]["score"] == "additive"


@pytest.mark.parametrize("score", ["additive", "dot"])
@pytest.mark.parametrize("decoder", ["ssru", "luong"])
def test_a_run_keeps_its_score(command_line, tmp_path, golden_run, score, decoder):
    """When it resumes, and when its config.json makes another run."""
    flags = {"decoder_size": 512 if decoder == "luong" else 256}
    model = ModelConfig.from_flat(attention="global", score=score, decoder=decoder, **flags)
    config = json.loads((golden_run / "config.json").read_text())
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config | {"format": 2, "model": model.to_dict()}))
    for source in (("--run", tmp_path), ("--config", path)):
        outcome = command_line("train", tmp_path, *source, "--print-config")
        found = tomllib.loads(outcome.out)
        assert (found["decoder"]["kind"], found["attention"]["score"]) == (decoder, score)
    assert ModelConfig.from_dict(model.to_dict()).attention.score == score  # as finetune reads it
