"""``nmtflex eval``: a run and a split, or two files; a table or one JSON object."""

from __future__ import annotations

import json

import pytest

import nmtflex.cli.evaluate  # noqa: F401  (adds the command)
from nmtflex.cli import app as nmtflex_app

BLEU = 100 * 0.2**0.25  # of "a b c d e" against "a b c d f": 4/5, 3/4, 2/3 and 1/2 match


@pytest.fixture(autouse=True)
def _only_eval(monkeypatch):
    monkeypatch.setattr(nmtflex_app, "_register", lambda: None)


@pytest.fixture
def pair(tmp_path):
    hypothesis, reference = tmp_path / "out.ja", tmp_path / "test.ja"
    hypothesis.write_text("a b c d e\n", encoding="utf-8")
    reference.write_text("a b c d f\n", encoding="utf-8")
    return "--hypothesis", hypothesis, "--reference", reference


def test_two_files_as_json(command_line, pair):
    outcome = command_line("eval", *pair, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.count("\n") == 1
    found = json.loads(outcome.out)
    assert found["bleu"] == pytest.approx(BLEU)
    assert found["chrf"] == pytest.approx(100 * (4 / 5 + 3 / 4 + 2 / 3 + 1 / 2 + 0) / 5)
    assert "|tok:13a|" in found["signature"]
    assert found["sentences"] == 1
    assert set(found) == {"bleu", "chrf", "signature", "chrf_signature", "sentences", "seconds"}


def test_two_files_as_a_table(command_line, pair):
    outcome = command_line("eval", *pair)
    rows = [line.split("\t") for line in outcome.out.splitlines()]
    assert [row[0] for row in rows] == ["metric", "BLEU", "chrF2"]
    assert rows[1][1] == "66.87"
    assert rows[1][2].startswith("nrefs:1|case:mixed|eff:no|tok:13a|")
    assert outcome.err == ""


@pytest.mark.parametrize("tokenize", ["none", "char", "intl", "zh", "ja-mecab"])
def test_tokenizers(command_line, pair, tokenize):
    found = json.loads(command_line("eval", *pair, "--tokenize", tokenize, "--json").out)
    assert f"|tok:{tokenize}" in found["signature"]


def test_text_without_spaces_gets_a_warning(command_line, tmp_path):
    path = tmp_path / "test.ja"
    path.write_text("空白のない文がここにあります\n", encoding="utf-8")
    files = "--hypothesis", path, "--reference", path
    outcome = command_line("eval", *files, "--json")
    assert outcome.err == (
        "nmtflex: warning: text without spaces, which BLEU took for single words; "
        "use --tokenize ja-mecab or char\n"
    )
    assert json.loads(outcome.out)["sentences"] == 1
    assert command_line("eval", *files, "--tokenize", "char").err == ""


def test_run(command_line, tiny_run, tmp_path):
    output = tmp_path / "out.txt"
    outcome = command_line("eval", tiny_run, "--json", "--beam", "2", "--output", output)
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    facts = {key: found[key] for key in ("run", "split", "beam", "update", "sentences")}
    assert facts == {
        "run": str(tiny_run),
        "split": "test",
        "beam": 2,
        "update": 1,
        "sentences": 3,
    }
    lines = output.read_text(encoding="utf-8").split("\n")
    assert len(lines) == 4
    assert lines[1] == lines[3] == ""
    assert "3 sentences of test translated with beam 2" in outcome.err
    # The run's words are parted at spaces: the same numbers come from its output as a file.
    pair = "--hypothesis", output, "--reference", tiny_run / "raw" / "test.target.txt"
    again = json.loads(command_line("eval", *pair, "--tokenize", "none", "--json").out)
    assert (found["bleu"], found["chrf"]) == (again["bleu"], again["chrf"])
    assert found["signature"] == again["signature"] + "|segmenter:none"


def test_run_as_a_table(command_line, tiny_run):
    outcome = command_line("eval", tiny_run, "--split", "test")
    rows = [line.split("\t") for line in outcome.out.splitlines()]
    assert [row[0] for row in rows] == ["metric", "BLEU", "chrF2", "CPS"]
    assert rows[3][1:] == ["3.50", "score computations a step"]  # of sources of 3 and 4 words


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "give a run folder, or --hypothesis and --reference"),
        (["--hypothesis", "h"], 2, "--hypothesis h needs --reference"),
        (["--reference", "r"], 2, "--reference r needs --hypothesis"),
        (
            ["RUN", "--hypothesis", "h"],
            2,
            "--hypothesis h is for scoring two files, not a run (RUN)",
        ),
        (["RUN", "--tokenize", "char"], 2, "--tokenize char is for scoring two files, not a run"),
        (["PAIR", "--split", "valid"], 2, "--split valid is for a run, not for scoring two files"),
        (["PAIR", "--output", "o"], 2, "--output o is for a run, not for scoring two files"),
        (["PAIR", "--beam", "7"], 2, "--beam 7 is for translating with a run, not for scoring"),
        (["PAIR", "--threads", "2"], 2, "--threads 2 is for translating with a run"),
        (["PAIR", "--batch-sentences", "2"], 2, "--batch-sentences 2 is for translating with"),
        (["PAIR", "--tokenize", "14a"], 2, "'14a' is not one of '13a', 'char', 'intl'"),
        (["RUN", "--split", "tset"], 1, "RUN has no split 'tset'; there is test"),
        (["RUN", "--output", "no/o"], 2, "--output no/o: there is no folder no"),
        (["nowhere"], 1, "nowhere"),
        (["--hypothesis", "none.x", "--reference", "none.x"], 1, "none.x: No such file"),
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
    assert message.replace("RUN", str(tiny_run)) in outcome.err


def test_files_of_different_length(command_line, pair):
    _, hypothesis, _, reference = pair
    hypothesis.write_text("a\nb\n", encoding="utf-8")
    outcome = command_line("eval", *pair)
    assert outcome.code == 1
    assert f"{hypothesis} has 2 lines, but {reference} has 1" in outcome.err
