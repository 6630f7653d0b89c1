"""Options by the names that other toolkits give them, and one name for what is written."""

from __future__ import annotations

import pytest
from test_help import commands

from nmtflex.config import nearest
from nmtflex.config.synonyms import _BOTH, _CALLED, synonyms
from nmtflex.errors import OptionError


def flags(command):
    return [flag for item in command.params for flag in item.opts if flag.startswith("--")]


def test_every_hint_names_an_option_of_ours():
    known = {flag for command in commands().values() for flag in flags(command)}
    named = {*_CALLED, *(ours for both in _BOTH.values() for ours in both)}
    assert sorted(name for name in named if f"--{name}" not in known) == []


@pytest.mark.parametrize(
    ("command", "given", "meant"),
    [
        ("train", "--update-freq", "--accumulate"),  # fairseq
        ("train", "--learning-rate", "--lr"),  # OpenNMT
        ("train", "--learn-rate", "--lr"),  # Marian
        ("train", "--layers", "--encoder-layers and --decoder-layers"),
        ("train", "--arch", "--attention"),
        ("train", "--max-tokens", "--batch-tokens"),
        ("train", "--batch_size", "--batch-sentences"),
        ("train", "--save-dir", "--run"),
        ("train", "--dump-config", "--print-config"),
        ("train", "--nproc-per-node", "--processes"),
        ("train", "--encoder-layer", "--encoder-layers"),  # a slip, no synonym
        ("finetune", "--max-update", "--updates"),
        ("translate", "--beam-size", "--beam"),
        ("translate", "--nbest", "--n-best"),
        ("translate", "--lenpen", "--length-penalty"),
        ("translate", "--no-repeat-ngram-size", "--no-repeat-ngram"),
        ("preprocess", "--src-lang", "--source-lang"),
        ("preprocess", "--tgt_lang", "--target-lang"),
        ("preprocess", "--trainpref", "--train"),
        ("eval", "--gen-subset", "--split"),
        ("eval", "--ref", "--reference"),
    ],
)
def test_a_name_of_another_toolkit_is_understood(command_line, command, given, meant):
    outcome = command_line(command, given, "1")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == f"nmtflex: error: No such option: {given}; did you mean {meant}?\n"


def test_a_hint_is_an_option_of_that_command(command_line):
    """Preprocess has no --lr."""
    outcome = command_line("preprocess", "--learning-rate", "1")
    assert outcome.err.endswith("--learning-rate; see nmtflex preprocess --help\n")


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("generate copy --zqx 3", "generate copy"),
        ("generate nix", "generate"),
        ("score run one two", "score"),
        ("translate", "translate"),
        ("train prepared", "train"),
    ],
)
def test_an_error_without_another_remedy_says_where_help_is(command_line, line, where):
    outcome = command_line(*line.split())
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert outcome.err.endswith(f"; see nmtflex {where} --help\n")


@pytest.mark.parametrize(
    ("words", "place"),
    [(("--quiet", "train"), True), (("--versio",), False), (("train", "--nothing"), False)],
)
def test_an_option_before_the_command_is_sent_behind_it(command_line, words, place):
    outcome = command_line(*words)
    assert (outcome.code, outcome.out) == (2, "")
    assert ("after the command" in outcome.err) is place


def test_hints_in_a_file_and_in_python(command_line, tmp_path, tiny_run):
    import nmtflex

    path = tmp_path / "options.toml"
    path.write_text("learning-rate = 1\n")
    outcome = command_line("train", "prepared", "--run", "run", "--config", path)
    assert outcome.err.endswith("'learning-rate'; did you mean lr?\n")
    with pytest.raises(OptionError, match=r"did you mean beam\?"):
        nmtflex.load(tiny_run, beam_size=3)


def test_an_own_spelling_comes_before_a_synonym():
    assert (
        nearest("max_length", ["max_length", "max-source-length"]) == "; did you mean max_length?"
    )
    assert synonyms("no-toolkit-has-this") == []


def test_out_is_understood_wherever_something_is_written():
    writing = {"--out", "--output", "--run"}
    found = {name: writing & set(flags(command)) for name, command in commands().items()}
    assert sorted(name for name, ways in found.items() if ways and "--out" not in ways) == []
    written = {name for name, ways in found.items() if ways}
    assert written >= {
        "preprocess", "train", "finetune", "average", "translate", "decode", "eval", "sweep",
        "plot", "report", "generate toy", "generate copy", "generate zipf",
    }  # fmt: skip


def test_out_and_output_are_one(command_line, tiny_run, tmp_path):
    source = tmp_path / "source"
    source.write_text("a b\n")
    texts = []
    for flag in ("--out", "--output", "-o"):
        path = tmp_path / flag
        command_line("translate", tiny_run, "--input", source, flag, path)
        texts.append(path.read_text())
    assert len(set(texts)) == 1
    assert command_line("eval", tiny_run, "--out", tmp_path / "eval").code == 0
    assert (tmp_path / "eval").is_file()
