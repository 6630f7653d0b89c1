"""What a model must be able to learn, through the commands, from made corpora."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.slow


def learn(command_line, folder, languages, train_options, generate_options):
    """Generate, preprocess, train, and return the BLEU of the test split."""
    corpus, prepared, run = folder / "corpus", folder / "prepared", folder / "run"
    source, target = languages
    languages = ("--source-lang", source, "--target-lang", target)
    splits = [x for name in ("train", "valid", "test") for x in (f"--{name}", corpus / name)]
    steps = [
        ("generate", *generate_options, "--out", corpus),
        ("preprocess", *languages, *splits, "--out", prepared),
        ("train", prepared, "--run", run, *train_options),
        ("eval", run, "--split", "test", "--json"),
    ]
    for step in steps:
        outcome = command_line(*step)
        assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)["bleu"]


@pytest.mark.parametrize("seed", [1, 2])
def test_the_toy_grammar(command_line, tmp_path, seed):
    sizes = ["--embedding-size", 128, "--encoder-size", 128, "--decoder-size", 256]
    options = [*sizes, "--batch-sentences", 32, "--epochs", 5, "--seed", seed]
    bleu = learn(command_line, tmp_path, ("en", "ja"), options, ["toy", "--seed", seed])
    assert bleu >= 90


@pytest.mark.parametrize("decoder", ["bahdanau", "luong"])
def test_to_copy(command_line, tmp_path, decoder):
    corpus = ["copy", "--max-length", 10, "--train", 20000, "--valid", 200, "--test", 200]
    sizes = ["--embedding-size", 64, "--encoder-size", 64, "--decoder-size", 64]
    options = [*sizes, "--decoder", decoder, "--batch-sentences", 64, "--epochs", 6, "--lr", 0.003]
    assert learn(command_line, tmp_path, ("src", "tgt"), options, corpus) >= 95
