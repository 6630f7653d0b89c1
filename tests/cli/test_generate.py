"""``nmtflex generate``: what stands on disk and on standard error afterwards."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from nmtflex.cli.generate import generate_app
from nmtflex.corpus.parallel import numbered
from nmtflex.errors import DataError, OptionError

TOY = ["toy", "--train", "12", "--valid", "4", "--test", "3"]
COPY = ["copy", "--train", "12", "--valid", "4", "--test", "3", "--max-length", "5"]
ZIPF = ["zipf", "--types", "30", "--train", "12", "--valid", "4", "--test", "3"]


def run(*arguments):
    return CliRunner().invoke(generate_app, [str(argument) for argument in arguments])


@pytest.mark.parametrize(
    ("arguments", "languages"),
    [(TOY, ("en", "ja")), (COPY, ("src", "tgt")), (ZIPF, ("src", "tgt"))],
)
def test_writes_three_splits_of_two_sides(tmp_path, arguments, languages):
    out = tmp_path / "corpus"
    result = run(*arguments, "--out", out)
    assert result.exit_code == 0
    assert result.stdout == ""
    lines = {path.name: path.read_text(encoding="utf-8").count("\n") for path in out.iterdir()}
    sizes = {"train": 12, "valid": 4, "test": 3}
    assert lines == {f"{split}.{lang}": n for split, n in sizes.items() for lang in languages}
    for split, n in sizes.items():
        assert f"{out / split}: {n} pairs; .{languages[0]} " in result.stderr


def test_one_pair_is_no_plural(tmp_path):
    result = run("copy", "--train", 2, "--valid", 1, "--test", 0, "--vocabulary", 1,
                 "--max-length", 1, "--out", tmp_path)  # fmt: skip
    told = result.stderr.splitlines()
    one = "pair; .src 1.0 tokens a sentence, 1 distinct; .tgt 1.0 tokens a sentence, 1 distinct"
    assert f"nmtflex: {tmp_path / 'valid'}: 1 {one}" in told
    assert any(line.startswith("nmtflex: valid: 1 sequence repeats others") for line in told)


@pytest.mark.parametrize("arguments", [TOY, COPY, ZIPF])
def test_same_seed_same_files(tmp_path, arguments):
    for name, seed in (("first", 3), ("again", 3), ("other", 4)):
        run(*arguments, "--seed", seed, "--out", tmp_path / name)
    first, again, other = (
        [path.read_bytes() for path in sorted((tmp_path / name).iterdir())]
        for name in ("first", "again", "other")
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("arguments", "file"), [(TOY, "test.ja"), (COPY, "test.tgt"), (ZIPF, "test.tgt")]
)
def test_nothing_is_written_over(tmp_path, arguments, file):
    (tmp_path / file).write_text("mine")
    result = run(*arguments, "--out", tmp_path)
    assert isinstance(result.exception, DataError)
    assert f"{tmp_path / file} already exists" in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == [file]


def test_bounds(tmp_path):
    result = run("toy", "--train", "0", "--valid", "-1", "--out", tmp_path)
    assert isinstance(result.exception, OptionError)
    assert "--train must be at least 1, not 0" in str(result.exception)
    assert "--valid must be at least 0, not -1" in str(result.exception)


def test_repeated_sequences_are_told(tmp_path):
    result = run("copy", "--max-length", 1, "--vocabulary", 2, "--train", 1000, "--valid", 5,
                 "--test", 0, "--out", tmp_path)  # fmt: skip
    assert result.exit_code == 0
    assert "nmtflex: valid: 5 sequences repeat others" in result.stderr


DRAWN = ["drawing test", "drawing valid", "drawing train", "writing", "counting words"]


@pytest.mark.parametrize(
    ("arguments", "stages"),
    [
        (TOY, DRAWN),
        (COPY, ["drawing train", "drawing valid", "drawing test", *DRAWN[3:]]),
        (ZIPF, ["making words", "writing train", "writing valid", "writing test"]),
    ],
)
def test_stages_what_was_written_and_its_speed_are_told(tmp_path, arguments, stages):
    out = tmp_path / "corpus"
    *told, train, valid, test, made = run(*arguments, "--out", out).stderr.splitlines()
    assert told == [f"nmtflex: {stage}" for stage in stages]
    for line, split, pairs in ((train, "train", 12), (valid, "valid", 4), (test, "test", 3)):
        assert line.startswith(f"nmtflex: {out / split}: {pairs} pairs; ")
    assert re.fullmatch(
        rf"nmtflex: {out}: made in \d+\.\d seconds \([\d,]+ pairs per second\)", made
    )


def test_pairs_done_are_told_now_and_then():
    told = []
    list(numbered(2001, "drawing", lambda *done: told.append(done)))
    assert told == [("drawing", 0), ("drawing", 1000), ("drawing", 2000)]
