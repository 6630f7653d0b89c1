from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nmtflex.config import PreprocessConfig
from nmtflex.errors import OptionError


@pytest.fixture
def corpus(tmp_path):
    """Write a training and a validation corpus; returns the options that name them."""
    for name, source, target in (
        ("train", "a b\n\nc\n", "x\ny\nz z\n"),
        ("valid", "\ufeffa q\n", "x\n"),
    ):
        (tmp_path / f"{name}.en").write_text(source, encoding="utf-8")
        (tmp_path / f"{name}.ja").write_text(target, encoding="utf-8")
    return [
        "--source-lang", "en", "--target-lang", "ja",
        "--train", tmp_path / "train", "--valid", tmp_path / "valid",
    ]  # fmt: skip


def test_it_makes_the_folder_and_reports(command_line, corpus, tmp_path):
    result = command_line("preprocess", *corpus, "--out", tmp_path / "out", "--max-length", 7)
    assert result.code == 0
    assert result.out == ""
    lines = result.err.splitlines()
    assert (
        "nmtflex: train: 3 pairs read, 2 kept, 1 dropped (1 with an empty side, "
        "0 longer than 7 tokens); "
        "unknown tokens: 0.00 % source, 0.00 % target"
    ) in lines
    assert (
        "nmtflex: valid: 1 pair read, 1 kept, 0 dropped; "
        "unknown tokens: 50.00 % source, 0.00 % target"
    ) in lines
    assert "nmtflex: vocabulary: 7 source, 6 target" in lines
    assert any("valid.en: " in line and "byte-order mark" in line for line in lines)
    made = rf"nmtflex: {tmp_path / 'out'}: made in [0-9.]+ seconds \([0-9,]+ pairs per second\)"
    assert re.fullmatch(made, lines[-1])
    manifest = json.loads((tmp_path / "out/manifest.json").read_text(encoding="utf-8"))
    assert manifest["options"]["max_length"] == 7


def test_a_language_that_moses_does_not_know_is_told(command_line, tmp_path):
    for language in ("de", "xx"):
        (tmp_path / f"c.{language}").write_text("a b\n")
    options = ["--source-lang", "xx", "--target-lang", "de", "--train", tmp_path / "c"]
    moses = ["--source-tokenizer", "moses", "--target-tokenizer", "moses"]
    result = command_line("preprocess", *options, *moses, "--out", tmp_path / "out")
    assert result.code == 0
    told = [line for line in result.err.splitlines() if "warning" in line]
    message = "Moses has no abbreviations for 'xx', and uses those of English"
    assert told == [f"nmtflex: warning: source: {message}"]


def test_joint_bpe_is_reported(command_line, corpus, tmp_path):
    corpus += ["--bpe", "4", "--joint"]
    result = command_line("preprocess", *corpus, "--out", tmp_path / "out")
    # No pair of letters is seen twice, so words fall into single characters.
    assert "vocabulary (joint): 9 source (0 BPE merges), 9 target (0 BPE merges)" in result.err
    assert "nmtflex: learning BPE" in result.err
    assert "nmtflex: BPE learned from all 2 training pairs in " in result.err
    assert " pairs per second, " in result.err.splitlines()[-1]


def test_the_sample_that_bpe_is_learned_from_is_told(command_line, corpus, tmp_path):
    corpus += ["--bpe", "4", "--bpe-sample", "1"]
    result = command_line("preprocess", *corpus, "--out", tmp_path / "out")
    sample = "nmtflex: BPE learned from 1 of 2 training pairs.* in [0-9.]+ seconds"
    assert any(re.fullmatch(sample, line) for line in result.err.splitlines())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--like", "prepared", "--bpe", "8"], "--bpe ... --like"),
        (["--like", "p", "--target-tokenizer", "char"], "--target-tokenizer ... --like"),
        (["--like", "p", "--joint"], "--joint ... --like"),
        (["--mecab-dictionary", "unidic-lite"], "--mecab-dictionary ... mecab tokenizer"),
        (["--max-ratio", "0.5"], "--max-ratio must be 0 or at least 1, not 0.5"),
        (["--max-length", "-1"], "--max-length must be at least 0, not -1"),
        (["--max-subwords", "-1", "--bpe", "8"], "--max-subwords must be at least 0, not -1"),
        (["--max-subwords", "9"], "--max-subwords 9 has no effect without --bpe"),
        (["--bpe-sample", "9"], "--bpe-sample 9 has no effect without --bpe"),
        (["--bpe-sample", "-1", "--bpe", "8"], "--bpe-sample must be at least 0, not -1"),
        (["--like", "p", "--bpe-sample", "9"], "--bpe-sample ... --like"),
        (["--max-pairs", "-1"], "--max-pairs must be at least 0, not -1"),
        (["--format", "aspic"], "'aspic'"),
        (
            ["--format", "aspec", "--target-lang", "de"],
            "--target-lang must be en or ja with --format aspec, not 'de'",
        ),
        (
            ["--format", "aspec", "--source-lang", "zh"],
            "--source-lang must be en or ja with --format aspec, not 'zh'",
        ),
        (
            ["--joint", "--source-vocabulary", "9"],
            "--source-vocabulary 9 and --target-voc",
        ),
        (["--source-lang", "ja"], "--source-lang and --target-lang are both 'ja'"),
        (["--source-lang", ".en"], "--source-lang ... '.en'"),
        (["--joint", "--source-tokenizer", "char"], "--joint needs words on both sides"),
    ],
)
def test_options_that_do_not_fit(command_line, corpus, tmp_path, options, message):
    result = command_line("preprocess", *corpus, "--out", tmp_path / "out", *options)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("nmtflex: error: ")
    assert [value for value in message.split(" ... ") if value not in result.err] == []
    assert result.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give at least one of --train, --valid and --test"),
        ({"test": Path("t")}, "give --train, or --like"),
        ({"test": Path("t"), "like": Path("p"), "max_ratio": 2.0}, "--max-ratio 2.0 has no effect"),
        ({"test": Path("t"), "like": Path("p"), "max_pairs": 2}, "--max-pairs 2 has no effect"),
        (
            {"test": Path("t"), "like": Path("p"), "max_subwords": 0},
            "--max-subwords 0 has no effect",
        ),
        (
            {
                "train": [Path("t")],
                "bpe": 9,
                "source_tokenizer": "char",
                "target_tokenizer": "char",
            },
            "--bpe has no effect on characters",
        ),
    ],
)
def test_what_a_config_refuses(options, message):
    with pytest.raises(OptionError, match=message):
        PreprocessConfig(out=Path("o"), source_lang="en", target_lang="ja", **options)


def test_bad_data_is_one_line_and_exit_code_1(command_line, corpus, tmp_path):
    (tmp_path / "train.ja").write_text("x\n")
    result = command_line("preprocess", *corpus, "--out", tmp_path / "out")
    assert result.code == 1
    last = result.err.splitlines()[-1]
    assert last == (
        f"nmtflex: error: {tmp_path / 'train.en'} has 3 lines but {tmp_path / 'train.ja'} has 1; "
        f"line i of one must translate line i of the other"
    )
    assert not (tmp_path / "out").exists()


@pytest.fixture
def aspec(tmp_path):
    """Write ASPEC files of four and two training pairs and one of dev; returns the options."""
    line = "犬 ||| the dog\n"
    for name, lines in (
        ("train-1.txt", [f"0.9 ||| A ||| {number} ||| {line}" for number in range(4)]),
        ("train-2.txt", [f"\ufeff0.5 ||| B ||| 1 ||| {line}", "0.4 ||| B ||| 2 |||  ||| a cat\n"]),
        ("dev.txt", [f"C ||| 1 ||| {line}"]),
    ):
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    train = ["--train", tmp_path / "train-1.txt", "--train", tmp_path / "train-2.txt"]
    return [
        "--format", "aspec", "--source-lang", "ja", "--target-lang", "en",
        *train, "--valid", tmp_path / "dev.txt", "--out", tmp_path / "out",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("most", "counts"),
    [
        (0, "6 pairs read, 5 kept, 1 dropped (1 with an empty side, "),
        (5, "5 pairs read (the first ones), 5 kept, 0 dropped (0 with"),
        (6, "6 pairs read (the first ones), 5 kept, 1 dropped (1 with"),
        (1_000, "6 pairs read (all; --max-pairs is 1,000), 5 kept, 1 dropped (1 with"),
    ],
)
def test_aspec_files_are_counted_together(command_line, aspec, tmp_path, most, counts):
    result = command_line("preprocess", *aspec, "--max-pairs", most)
    assert result.code == 0
    assert f"nmtflex: train: {counts}" in result.err
    assert "nmtflex: valid: 1 pair read, 1 kept" in result.err
    assert f"{tmp_path / 'train-2.txt'}: removed the byte-order mark" in result.err
    assert "not read" not in result.err


def test_files_that_max_pairs_leaves_out_are_named(command_line, aspec, tmp_path):
    result = command_line("preprocess", *aspec, "--max-pairs", 4)
    assert "nmtflex: train: 4 pairs read (the first ones), 4 kept" in result.err
    assert f"{tmp_path / 'train-2.txt'}: not read: --max-pairs 4 " in result.err
    manifest = json.loads((tmp_path / "out/manifest.json").read_text(encoding="utf-8"))
    assert [file["pairs"] for file in manifest["inputs"]["train"]] == [4, 0]


def test_subwords_are_reported(command_line, corpus, tmp_path):
    options = ["--bpe", "4", "--max-subwords", "1"]
    result = command_line("preprocess", *corpus, "--out", tmp_path / "out", *options)
    assert result.code == 1
    assert "none of 3 training pairs are left: 1 with an empty side, 2 longer than 1" in result.err
    options[-1] = "2"
    result = command_line("preprocess", *corpus, "--out", tmp_path / "out", *options)
    assert "longer than 100 tokens, 0 longer than 2 subwords);" in result.err


def test_a_malformed_aspec_line_is_one_line_and_exit_code_1(command_line, aspec, tmp_path):
    (tmp_path / "train-2.txt").write_text("C ||| 1 ||| 犬 ||| the dog\n", encoding="utf-8")
    result = command_line("preprocess", *aspec)
    assert result.code == 1
    assert result.err.splitlines()[-1] == (
        f"nmtflex: error: {tmp_path / 'train-2.txt'}:1: 4 fields, but a line must be "
        f"score ||| id ||| number ||| Japanese ||| English; a file without scores, such as ASPEC's "
        f"dev.txt, is for --valid or --test"
    )
    assert not (tmp_path / "out").exists()


def test_a_signal_leaves_nothing_behind(command_line, corpus, tmp_path, monkeypatch):
    def interrupted(*_):
        os.kill(os.getpid(), signal.SIGTERM)
        yield ["a"], ["x"]

    monkeypatch.setattr("nmtflex.corpus.prepare.read_chunks", interrupted)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit, match="143"):
        command_line("preprocess", *corpus, "--out", tmp_path / "made" / "out")
    assert list((tmp_path / "made").iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) == before


def test_progress_on_a_terminal_goes_to_standard_error(corpus, tmp_path):
    command = [sys.executable, "-m", "nmtflex", "preprocess", *map(str, corpus)]
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "out"), "--workers", "2"],
        stdout=subprocess.PIPE, stderr=follower, env=environment, check=True,
    )  # fmt: skip
    os.close(follower)
    shown = os.read(leader, 1 << 16).decode()
    os.close(leader)
    assert done.stdout == b""
    assert "reading train: 3 pairs" in shown
    assert "train: 3 pairs read, 2 kept" in shown


def test_training_data_among_the_others_is_warned_of(command_line, corpus, tmp_path):
    for language in ("en", "ja"):
        copy = (tmp_path / f"train.{language}").read_bytes()
        (tmp_path / f"copy.{language}").write_bytes(copy)
    more = ("--test", tmp_path / "train", "--valid", tmp_path / "copy")
    outcome = command_line("preprocess", *corpus[:-2], *more, "--out", tmp_path / "out")
    assert outcome.code == 0
    told = [line for line in outcome.err.splitlines() if "training data" in line]
    assert len(told) == 4
    assert f"warning: valid: {tmp_path / 'copy.en'} " in told[0]
    assert str(tmp_path / "train.en") in told[0]
    assert f"warning: test: {tmp_path / 'train.ja'} is training data" in told[3]
    apart = command_line("preprocess", *corpus, "--out", tmp_path / "apart")
    assert "training data" not in apart.err


def test_a_file_that_is_not_read_is_named(command_line, corpus, tmp_path):
    for name in ("train.en.gz", "valid.ja.zst", "other.en.gz"):
        (tmp_path / name).write_bytes(b"whatever")
    outcome = command_line("preprocess", *corpus, "--out", tmp_path / "out")
    assert outcome.code == 0
    told = [line for line in outcome.err.splitlines() if "beside it was not" in line]
    assert [line.partition(": ")[2] for line in told] == [
        f"warning: {tmp_path / read} was read, but {tmp_path / other} beside it was not"
        for read, other in (("train.en", "train.en.gz"), ("valid.ja", "valid.ja.zst"))
    ]
