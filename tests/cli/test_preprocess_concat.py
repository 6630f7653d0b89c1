"""``preprocess --concat`` on the command line; what it joins is tested beside the corpus."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def corpus(tmp_path):
    lines = [f"w{number} is here ." for number in range(30)]
    for side in ("aa", "bb"):
        (tmp_path / f"train.{side}").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "names").write_text("x\n" * 10 + "y\n" * 20)
    languages = ["--source-lang", "aa", "--target-lang", "bb"]
    return [*languages, "--train", tmp_path / "train", "--out", tmp_path / "out"]


def test_samples_are_counted(command_line, corpus, tmp_path):
    options = ["--concat", 4, "--concat-documents", tmp_path / "names", "--concat-length", 12]
    result = command_line("preprocess", *corpus, *options)
    assert result.code == 0, result.err
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    about = manifest["splits"]["train"]["concat"]
    assert manifest["options"]["concat"] == 4
    assert manifest["options"]["concat_documents"] == [str(tmp_path / "names")]
    [line] = [line for line in result.err.splitlines() if "joined: " in line]
    assert f"{about['samples']} samples of 2 to 4 sentences" in line
    assert f"{30 - about['sentences']} of 30 sentences in none" in line
    assert f"{about['shortened']} ended at 12 tokens" in line
    assert "30 pairs read, 30 kept" in result.err


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--concat-length", 9], 2, "--concat-length 9 has no effect without --concat"),
        (["--concat", 2, "--concat-documents", "gone"], 1, "gone: No such file"),
    ],
)
def test_wrong_options(command_line, corpus, tmp_path, options, code, message):
    result = command_line("preprocess", *corpus, *options)
    assert result.code == code
    assert message in result.err
    assert not (tmp_path / "out").exists()


def test_joining_needs_training_data(command_line, corpus, tmp_path):
    assert command_line("preprocess", *corpus).code == 0
    options = ["--source-lang", "aa", "--target-lang", "bb", "--test", tmp_path / "train"]
    out = ["--like", tmp_path / "out", "--out", tmp_path / "test", "--concat", 3]
    result = command_line("preprocess", *options, *out)
    assert result.code == 2
    assert "--concat 3 has no effect without --train" in result.err
