"""``translate --split sentences`` and ``--join``."""

from __future__ import annotations

import json

import pytest

import nmtflex

ONE_THREAD = ("--threads", 1)
# The tiny run knows the words a to h; a sentence ends at a lone ".", and the longest has 10 tokens.
LINES = [
    "a b bee . c bee .",
    "",
    "\r",
    "  a b bee .\u3000c bee .  h g bee . \t\r",
    "日本 。 a b 。",
    "   ",
    "a b c d e f g h a b c d e f g h a b c .",
    "a",
]


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.txt"
    path.write_bytes("".join(f"{line}\n" for line in LINES).encode())
    return path


def test_sentences_are_translated_one_by_one(command_line, tiny_run, source):
    """White space and lines are those of the source; parts are translated as lines would be."""
    options = [tiny_run, *ONE_THREAD, "--split", "sentences", "-i", source]
    result = command_line("translate", *options, "--format", "json")
    assert result.code == 0, result.err
    records = [json.loads(line) for line in result.out.splitlines()]
    assert [record["source"] for record in records] == LINES
    units = [[unit["source"] for unit in record["units"]] for record in records]
    assert units[0] == ["a b bee .", "c bee ."]
    assert units[1] == units[2] == units[5] == []
    assert units[3] == ["a b bee .", "c bee .", "h g bee ."]
    assert units[4] == ["日本 。", "a b 。"]
    assert [len(unit.split()) for unit in units[6]] == [10, 10]
    translate = nmtflex.load(tiny_run, threads=1).translate
    for record in records:
        alone = translate([unit["source"] for unit in record["units"]])
        assert [unit["text"] for unit in record["units"]] == alone
        best = record["translations"][0]
        line = record["source"]
        for unit, text in zip(record["units"], alone, strict=True):
            before, found, after = line.partition(unit["source"])
            assert found
            assert not before.strip()
            assert best["text"].startswith(before + text)
            best["text"], line = best["text"][len(before + text) :], after
        assert best["text"] == line


@pytest.mark.slow
def test_the_lines_are_those_of_the_api_and_of_any_workers(command_line, tiny_run, source):
    options = ["translate", tiny_run, *ONE_THREAD, "-i", source, "--split", "sentences"]
    expected = nmtflex.load(tiny_run, threads=1, split="sentences", join=2).translate(LINES)
    text = "".join(f"{line}\n" for line in expected)
    assert command_line(*options, "--join", 2).out == text
    assert command_line(*options, "--join", 2, "--buffer", 3, "--batch-sentences", 2).out == text
    assert command_line(*options, "--join", 2, "--workers", 2, "--buffer", 2).out == text
    assert command_line(*options).out != text


def test_windows_and_a_given_length(command_line, tiny_run, source):
    def units(*more):
        options = [tiny_run, *ONE_THREAD, "-i", source, "--split", "sentences", "--format", "json"]
        lines = command_line("translate", *options, *more).out.splitlines()
        return [[unit["source"] for unit in json.loads(line)["units"]] for line in lines]

    assert units("--join", 2)[3] == ["a b bee .\u3000c bee .", "h g bee ."]
    assert units("--join", 9)[0] == ["a b bee . c bee ."]
    assert units("--join", 9, "--max-source-length", 5)[0] == ["a b bee .", "c bee ."]
    [*short] = units("--max-source-length", 4)[6]
    assert [len(unit.split()) for unit in short] == [4] * 5
    assert " ".join(short) == LINES[6]


def test_the_score_is_that_of_all_tokens(tiny_run):
    translator = nmtflex.load(tiny_run, threads=1, split="sentences", length_penalty=0.6)
    alone = nmtflex.load(tiny_run, threads=1, length_penalty=0.6)
    [[best]] = translator.n_best(["a b bee . c bee ."], 1)
    parts = [one for (one,) in alone.n_best(["a b bee .", "c bee ."], 1)]
    total = sum(part.log_probability for part in parts)
    length = sum(len(part.tokens) + 1 for part in parts)
    assert best.log_probability == pytest.approx(total, rel=1e-12)
    assert best.score == pytest.approx(total / length**0.6, rel=1e-12)
    assert best.tokens == [token for part in parts for token in part.tokens]
    assert best.truncated == any(part.truncated for part in parts)


def test_score_computations_are_those_of_the_parts(command_line, tiny_run, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.write_text("a b bee . c bee .\n")
    parts.write_text("a b bee .\nc bee .\n")
    options = ["translate", tiny_run, *ONE_THREAD, "--stats"]
    split = command_line(*options, "-i", whole, "--split", "sentences").err.splitlines()[-1]
    assert "CPS" in split
    assert split == command_line(*options, "-i", parts).err.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--join", "2"], "--join 2 has no effect without --split sentences"),
        (["--split", "sentences", "--join", "0"], "--join must be at least 1, not 0"),
        (["--split", "sentences", "--n-best", "2", "--format", "json"], "--n-best 2 cannot"),
        (["--split", "sentences", "--verbose"], "--verbose cannot"),
        (["--split", "sentences", "--attention-output", "x"], "--attention-output x cannot"),
    ],
)
def test_wrong_options(command_line, tiny_run, source, arguments, message):
    result = command_line("translate", tiny_run, *ONE_THREAD, "-i", source, *arguments)
    assert (result.code, result.out) == (2, "")
    assert f"nmtflex: error: {message}" in result.err


def test_several_translations_from_python(tiny_run):
    translator = nmtflex.load(tiny_run, threads=1, split="sentences")
    for options in ({"count": 2}, {"count": 1, "trace": True}):
        with pytest.raises(nmtflex.errors.OptionError, match="one translation"):
            translator.n_best(["a"], **options)
