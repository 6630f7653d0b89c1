"""What ``nmtflex eval`` refuses: one line that names the value, the place and the remedy."""

from __future__ import annotations

import pytest


@pytest.fixture
def file(tmp_path):
    def write(name, *lines):
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return write


@pytest.fixture
def pair(file):
    hypothesis, reference = file("out.ja", "a b c d e"), file("test.ja", "a b c d f")
    return "--hypothesis", hypothesis, "--reference", reference


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "give a run folder, or --hypothesis and --reference"),
        (["--hypothesis", "h"], 2, "--hypothesis h needs --reference"),
        (["--reference", "r"], 2, "--reference r needs --hypothesis"),
        (["RUN", "--hypothesis", "h"], 2, "--hypothesis h ... RUN"),
        (["RUN", "--reference", "r"], 2, "--reference r ... --source FILE"),
        (["RUN", "--source", "s"], 2, "--source s ... --reference FILE"),
        (
            ["RUN", "--source", "s", "--reference", "r", "--split", "test"],
            2,
            "--split test ... --source",
        ),
        (["RUN", "RUN"], 2, "RUN is given twice"),
        (["RUN", "other", "--output", "o"], 2, "--output o ... --ensemble ... 2 runs"),
        (["RUN", "other", "--sentence-scores", "o"], 2, "--sentence-scores o ... --ensemble"),
        (["RUN", "--source", "none.x", "--reference", "r"], 1, "none.x: No such file"),
        (["RUN", "--tokenize", "char"], 2, "--tokenize char ... RUN"),
        (["PAIR", "--split", "valid"], 2, "--split valid "),
        (["PAIR", "--output", "o"], 2, "--output o "),
        (["PAIR", "--beam", "7"], 2, "--beam 7 "),
        (["PAIR", "--threads", "2"], 2, "--threads 2 "),
        (["PAIR", "--batch-sentences", "2"], 2, "--batch-sentences 2 "),
        (["PAIR", "--tokenize", "14a"], 2, "'14a' is not one of '13a', 'char', 'intl'"),
        (["PAIR", "--case-sensitive"], 2, "--case-sensitive has no effect without --ribes or --w"),
        (["PAIR", "--segmenter", "mecab"], 2, "--segmenter mecab has no effect without --wat ja"),
        (["PAIR", "--kytea-model", "m"], 2, "--kytea-model m has no effect without --wat ja"),
        (["PAIR", "--wat", "ja"], 2, "--wat ja needs --kytea-model FILE"),
        (["PAIR", "--wat", "en", "--kytea-model", "m"], 2, "--kytea-model m has no effect without"),
        (
            ["PAIR", "--wat", "en", "--tokenize", "zh"],
            2,
            "--tokenize zh ... --wat en",
        ),
        (["PAIR", "--wat", "en", "--lowercase"], 2, "--lowercase ... --wat en"),
        (
            ["PAIR", "--wat", "ja", "--segmenter", "mecab", "--kytea-model", "m"],
            2,
            "--kytea-model m ... --segmenter mecab",
        ),
        (["PAIR", "--samples", "5"], 2, "--samples 5 has no effect without --significance"),
        (["PAIR", "--seed", "5"], 2, "--seed 5 has no effect without --significance"),
        (["RUN", "--seed", "5"], 2, "--seed 5 has no effect without --significance"),
        (["PAIR", "--seed", "0"], 2, "--seed must be at least 1, not 0"),
        (["PAIR", "--samples", "0"], 2, "--samples must be at least 1, not 0"),
        (["PAIR", "--samples", "100001"], 2, "--samples must be at most 100000, not 100001"),
        (["PAIR", "--significance", "t"], 2, "'t' is not one of 'bootstrap', 'randomisation'"),
        (
            ["PAIR", "--significance", "randomisation"],
            2,
            "--significance randomisation ... --hypothesis",
        ),
        (
            ["RUN", "--significance", "randomisation"],
            2,
            "--significance randomisation ... --hypothesis",
        ),
        (["PAIR", "--source", "s"], 2, "--source s has no effect without --by-length"),
        (["PAIR", "--by-length"], 2, "--by-length needs --source FILE"),
        (
            ["PAIR", "--hypothesis", "h", "--sentence-scores", "s"],
            2,
            "--sentence-scores s ... --hypothesis ... 2",
        ),
        (["PAIR", "--sentence-scores", "no/s"], 2, "--sentence-scores no/s: there is no folder no"),
        (["PAIR", "--sentence-scores", "/"], 2, "--sentence-scores /: that is a folder; give a f"),
        (["RUN", "--split", "tset"], 1, "RUN has no split 'tset'; there is test"),
        (["RUN", "--output", "no/o"], 2, "--output no/o: there is no folder no"),
        (["RUN", "--output", "o", "--sentence-scores", "o"], 2, "--sentence-scores o "),
        (["RUN", "--ribes"], 1, "RUN/raw/test.target.txt:2: an empty reference, which RIBES"),
        (["nowhere"], 1, "nowhere"),
        (["--hypothesis", "none.x", "--reference", "none.x"], 1, "none.x: No such file"),
        (["PAIR", "--by-length", "--source", "none.x"], 1, "none.x: No such file"),
    ],
)
def test_wrong_command_lines(command_line, tiny_run, pair, arguments, code, message):
    filled = []
    for argument in arguments:
        filled += [tiny_run] if argument == "RUN" else pair if argument == "PAIR" else [argument]
    outcome = command_line("eval", *filled)
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err.startswith("nmtflex: error: ")
    assert outcome.err.count("\n") == 1
    values = message.replace("RUN", str(tiny_run)).split(" ... ")
    assert [value for value in values if value not in outcome.err] == []


def test_files_are_given_by_name(command_line, pair):
    _, hypothesis, _, reference = pair
    outcome = command_line("eval", hypothesis)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert outcome.err.startswith(f"nmtflex: error: {hypothesis} ")
    assert f"--hypothesis {hypothesis} --reference FILE" in outcome.err
    assert command_line("eval", hypothesis, reference).err == outcome.err


def test_missing_model(command_line, pair, tmp_path):
    pytest.importorskip("vaporetto")
    model = tmp_path / "jp.bin"
    outcome = command_line("eval", *pair, "--wat", "ja", "--kytea-model", model)
    assert (outcome.code, outcome.err.count("\n")) == (1, 1)
    assert f"{model}: No such file" in outcome.err


def test_written_files_are_no_others(command_line, pair):
    outcome = command_line("eval", *pair, "--sentence-scores", pair[1])
    assert outcome.code == 2
    assert f"--sentence-scores {pair[1]} " in outcome.err
    assert pair[1].read_text(encoding="utf-8") == "a b c d e\n"


def test_files_of_different_length(command_line, pair, file):
    _, hypothesis, _, reference = pair
    hypothesis.write_text("a\nb\n", encoding="utf-8")
    outcome = command_line("eval", *pair)
    assert (outcome.code, outcome.err.count("\n")) == (1, 1)
    assert f"{hypothesis} has 2 lines, but {reference} has 1" in outcome.err
    assert f"{hypothesis}:2 has no counterpart" in outcome.err
    hypothesis.write_text("a\n", encoding="utf-8")
    more = file("more", "a", "b")
    outcome = command_line("eval", *pair, "--reference", more)
    assert f"{reference} has 1 line, but {more} has 2" in outcome.err
    outcome = command_line("eval", *pair, "--by-length", "--source", more)
    assert f"{more} has 2 lines, but {hypothesis} has 1" in outcome.err
    outcome = command_line("eval", *pair, "--hypothesis", more, "--significance", "bootstrap")
    assert f"{more} has 2 lines, but {reference} has 1" in outcome.err


def test_empty_reference(command_line, file):
    files = "--hypothesis", file("h", "a", "b"), "--reference", file("r", "a", "")
    outcome = command_line("eval", *files, "--ribes")
    assert outcome.code == 1
    assert f"{files[-1]}:2: an empty reference" in outcome.err
    assert "RIBES" in outcome.err
    assert command_line("eval", *files).code == 0


def test_empty_files(command_line, file):
    files = "--hypothesis", file("h"), "--reference", file("r")
    outcome = command_line("eval", *files)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == f"nmtflex: error: {files[-1]} is empty: no lines to score\n"


def test_significance_beyond_the_memory(command_line, pair, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr("nmtflex.scoring.evaluation.compare", fail)
    outcome = command_line("eval", *pair, "--significance", "bootstrap", "--samples", "99999")
    assert outcome.code == 2
    assert outcome.err.startswith("nmtflex: error: --significance bootstrap with 99,999 resamples")
    assert "--samples" in outcome.err


def test_ctrl_c_is_told(command_line, tiny_run, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("nmtflex.evaluation.runs.read_split", interrupt)
    assert command_line("eval", tiny_run) == (130, "", "nmtflex: error: interrupted\n")
