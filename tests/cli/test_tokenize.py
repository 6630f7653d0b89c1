"""``nmtflex tokenize`` and ``detokenize``, and the same options of ``nmtflex preprocess``."""

from __future__ import annotations

import io
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nmtflex.cli.app import main
from nmtflex.corpus.store import open_prepared

TINY = Path(__file__).parents[1] / "fixtures/tiny.kytea"
SHARED = Path(__file__).parents[3] / "shared"
MOSES = ("--tokenizer", "moses", "--lang")
KYTEA = ("--kytea-model", TINY)
NEEDS = {"mecab": "MeCab", "kytea": "vaporetto"}

WAYS = {
    "none": ("--tokenizer", "none"),
    "char": ("--tokenizer", "char"),
    "moses": (*MOSES, "de"),
    "plain moses": (*MOSES, "en", "--aggressive", "--no-escape"),
    "mecab": ("--tokenizer", "mecab"),
    "kytea": ("--tokenizer", "kytea", *KYTEA),
    "wat kytea": ("--wat", "ja", *KYTEA),
    "wat mecab": ("--wat", "ja", "--segmenter", "mecab"),
    "wat en": ("--wat", "en"),
    "nfkc": ("--tokenizer", "char", "--normalize", "nfkc"),
}


@pytest.fixture
def pipe(command_line, monkeypatch):
    """Run a filter on bytes or text; returns its exit code, output and errors."""

    def run(name, arguments, text):
        data = text if isinstance(text, bytes) else text.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        return command_line(name, *arguments)

    return run


@pytest.fixture(params=WAYS)
def way(request):
    """Return the options of each filter whose packages are there."""
    for word, package in NEEDS.items():
        if word in request.param:
            pytest.importorskip(package)
    return WAYS[request.param]


@pytest.mark.parametrize(
    ("options", "line", "tokens", "restored"),
    [
        ((*MOSES, "en"), 'It\'s "it".', "It &apos;s &quot; it &quot; .", 'It\'s "it".'),
        ((*MOSES, "de"), "z.B. ca. 3 km.", "z.B. ca. 3 km .", "z.B. ca. 3 km."),
        ((*MOSES, "en", "--aggressive"), "a-b's", "a @-@ b &apos;s", "a-b's"),
        ((*MOSES, "en", "--no-escape"), "a-b's &amp;", "a-b 's & amp ;", "a-b's & amp;"),
        (("--tokenizer", "none"), " a  b\t", "a b", "a b"),
        (("--tokenizer", "char"), "a ▁\tb ", "a ▁ \\▁ \t b ▁", "a ▁\tb "),
        (("--tokenizer", "char", "--normalize", "wat-width"), "a-1", "ａ − １", "ａ−１"),
        (
            ("--tokenizer", "kytea", *KYTEA),
            "私はNew Yorkへ行く。",
            "私 は New York へ 行 く 。",
            "私はNew Yorkへ行く。",
        ),
        (
            ("--tokenizer", "mecab"),
            "私はNew Yorkへ行く。",
            "私 は New York へ 行く 。",
            "私はNew Yorkへ行く。",
        ),
        (("--wat", "ja", *KYTEA), "私は3.5 AB。［１］", "私 は ３．５ ＡＢ 。", "私は３．５ＡＢ。"),
        (
            ("--wat", "ja", "--segmenter", "mecab", "--mecab-dictionary", "ipadic"),
            "東京へ12 km。",
            "東京 へ １２ ｋｍ 。",
            "東京へ１２ｋｍ。",
        ),
        (("--wat", "en"), "“Ａ” isn’t", "&quot; A &quot; isn &apos;t", '"A" isn\'t'),
    ],
)
def test_there_and_back(pipe, options, line, tokens, restored):
    for word, package in NEEDS.items():
        if word in options or (word == "kytea" and TINY in options):
            pytest.importorskip(package)
    assert pipe("tokenize", options, f"{line}\n") == (0, f"{tokens}\n", "")
    assert pipe("detokenize", options, f"{tokens}\n") == (0, f"{restored}\n", "")


def test_joining_needs_no_model(pipe):
    assert pipe("detokenize", ("--tokenizer", "kytea"), "東京 へ\n").out == "東京へ\n"
    assert pipe("detokenize", ("--wat", "ja"), "東京 へ\n").out == "東京へ\n"


@pytest.mark.sampled(2)
def test_every_kind_of_line(pipe, way):
    lines = [
        "\ufeff東京 a",  # at the start of a file, a byte-order mark is none of the text
        "dos\r",
        "",
        "  ",
        "\r",
        "\u200fעברית\u202e \u00a0 x\u0085y\u2028z",
        "👨‍👩‍👧 𠮟る ﾊﾟ e\u0301",
        "\x01\x1f\x7f",
        "東京へ行く。 New York. " * 50_000,  # more than a million characters
        "no line feed",
    ]
    for name in ("tokenize", "detokenize"):
        result = pipe(name, way, "\n".join(lines))
        assert (result.code, result.err) == (0, "")
        assert result.out.count("\n") == len(lines)
        assert "\ufeff" not in result.out
        assert "\r" not in result.out
    assert pipe("tokenize", way, "a b\r\nc\r\n").out == pipe("tokenize", way, "a b\nc\n").out


def test_no_line_at_all(pipe, way):
    for name in ("tokenize", "detokenize"):
        assert pipe(name, way, "") == (0, "", "")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"good\nb\xed\xa0\xbd\n", "standard input:2: not valid UTF-8 (byte 0xed at column 2); "),
        (b"good\na\0b\n", "standard input:2: NUL byte at column 2"),
        (b"good\n\xff\xfea\0\n", "standard input:2: not valid UTF-8 (byte 0xff at column 1); "),
    ],
)
def test_what_is_no_text_is_named_after_the_lines_before_it(pipe, data, message):
    result = pipe("tokenize", WAYS["none"], data)
    assert (result.code, result.out) == (1, "good\n")
    assert result.err.startswith(f"nmtflex: error: {message}"[:60])
    assert result.err.count("\n") == 1


def run_filter(name, arguments, text, capsys):
    """Run a filter without fixtures that live for one example."""
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    try:
        assert main([name, *map(str, arguments)]) == 0
    finally:
        sys.stdin = before
    return capsys.readouterr().out


PLAIN = st.characters(exclude_characters="\0\n", exclude_categories=["Cs"])


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25
)
@given(st.lists(st.text(PLAIN) | st.text(" \t\r\u3000▁\\&;'a.東")))
def test_characters_come_back_whatever_the_text(capsys, lines):
    text = "".join(f"{line}\n" for line in lines)
    tokens = run_filter("tokenize", WAYS["char"], text, capsys)
    restored = run_filter("detokenize", WAYS["char"], tokens, capsys)
    without_mark = text.removeprefix("\ufeff")
    assert restored == "".join(
        f"{line.rstrip(chr(13))}\n" for line in without_mark.split("\n")[:-1]
    )


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=10
)
@given(lines=st.lists(st.text(PLAIN)))
@pytest.mark.parametrize("name", ["moses", "plain moses", "wat en", "mecab", "wat mecab"])
def test_no_filter_changes_the_number_of_lines(capsys, name, lines):
    if "mecab" in name:
        pytest.importorskip("MeCab")
    text = "".join(f"{line}\n" for line in lines)
    tokens = run_filter("tokenize", WAYS[name], text, capsys)
    assert tokens.count("\n") == len(lines)
    assert run_filter("detokenize", WAYS[name], tokens, capsys).count("\n") == len(lines)
    assert run_filter("detokenize", WAYS[name], text, capsys).count("\n") == len(lines)


def test_each_line_comes_before_the_next_one_is_read():
    command = [sys.executable, "-m", "nmtflex", "tokenize", *MOSES, "en"]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "LC_ALL": "C"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        for line, tokens in (("Ünsinn, a.", "Ünsinn , a .\n"), ("b", "b\n")):
            process.stdin.write(f"{line}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline().decode() == tokens
        process.stdin.close()
        assert process.wait() == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give --tokenizer or --wat"),
        (("--tokenizer", "moses"), "--tokenizer moses needs --lang"),
        (("--tokenizer", "char", "--lang", "de"), "--lang de has no effect without the moses"),
        (("--tokenizer", "none", "--aggressive"), "--aggressive has no effect without the moses"),
        (("--wat", "en", "--no-escape"), "--no-escape has no effect without the moses tokenizer"),
        (("--wat", "en", *KYTEA), "--kytea-model "),
        (("--wat", "en", "--segmenter", "mecab"), "--segmenter mecab has no effect without --wat"),
        (("--wat", "ja", "--tokenizer", "char", *KYTEA), "--tokenizer char has no effect"),
        (("--wat", "ja", *KYTEA, "--normalize", "nfkc"), "--normalize nfkc has no effect"),
        (
            ("--tokenizer", "kytea", "--mecab-dictionary", "unidic-lite"),
            "--mecab-dictionary unidic-lite has",
        ),
    ],
)
def test_options_that_do_not_fit(pipe, arguments, message):
    for name in ("tokenize", "detokenize"):
        result = pipe(name, arguments, "a\n")
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
        assert message in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--tokenizer", "kytea"), "--tokenizer kytea needs --kytea-model FILE"),
        (("--wat", "ja"), "--wat ja needs --kytea-model FILE"),
        (("--tokenizer", "mecab", "--mecab-dictionary", "naist"), "'naist' is not one of 'ipadic'"),
        (("--tokenizer", "kyte"), "'kyte' is not one of"),
    ],
)
def test_what_splitting_lacks(pipe, arguments, message):
    result = pipe("tokenize", arguments, "a\n")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert message in result.err


@pytest.mark.parametrize("language", ["xx", "english"])
def test_a_language_that_moses_does_not_know_is_told(pipe, language):
    options = ("--tokenizer", "moses", "--lang")
    result = pipe("tokenize", (*options, language), "Mr. A.\n")
    assert (result.code, result.out) == (0, pipe("tokenize", (*options, "en"), "Mr. A.\n").out)
    message = f"warning: Moses has no abbreviations for '{language}', and uses those of English"
    assert result.err == f"nmtflex: {message}\n"
    assert pipe("tokenize", (*options, "de-AT"), "a\n").err == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file or directory; give KyTea's model file with --kytea-model"),
        (b"", "not a KyTea model"),
        (TINY.read_bytes()[:2000], "a damaged KyTea model"),
    ],
)
def test_a_bad_model_is_one_line(pipe, tmp_path, content, message):
    pytest.importorskip("vaporetto")
    model = tmp_path / "jp.bin"
    if content is not None:
        model.write_bytes(content)
    for options in (("--tokenizer", "kytea"), ("--wat", "ja")):
        result = pipe("tokenize", (*options, "--kytea-model", model), "a\n")
        assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
        assert result.err.startswith(f"nmtflex: error: {model}: {message}")


@pytest.mark.parametrize(
    ("module", "option", "remedy"),
    [
        ("vaporetto", "kytea", "pip install vaporetto"),
        ("MeCab", "mecab", "pip install mecab-python3"),
        ("ipadic", "mecab", "pip install ipadic"),
    ],
)
def test_a_missing_package_is_one_line(pipe, monkeypatch, module, option, remedy):
    monkeypatch.setitem(sys.modules, module, None)
    result = pipe("tokenize", WAYS[option], "a\n")
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert remedy in result.err


@pytest.mark.parametrize(
    ("name", "field", "options"),
    [
        ("wat_japanese", "rejoined", None),
        ("moses_tokenizer", "moses", ()),
        ("moses_tokenizer", "moses_aggressive_no_escape", ("--aggressive", "--no-escape")),
    ],
)
def test_equals_the_official_programs(pipe, name, field, options):
    path = SHARED / f"oracles/{name}.jsonl.xz"
    if not path.exists():
        pytest.skip("their outputs are not here")
    rows = [json.loads(row) for row in lzma.decompress(path.read_bytes()).split(b"\n") if row]
    if options is None:
        pytest.importorskip("vaporetto")
        model = SHARED / "data/kytea_model/kytea-tanaka-kftt.bin.xz"
        rows = [row for row in rows if "raw" in row and field in row]
        parts = {"raw": (("--wat", "ja", "--kytea-model", model), rows)}
    else:
        parts = {
            language: ((*MOSES, language, *options), [r for r in rows if r["language"] == language])
            for language in ("en", "de")
        }
    for arguments, chosen in parts.values():
        lines = [row.get("raw", row.get("text")) for row in chosen]
        found = pipe("tokenize", arguments, "".join(f"{line}\n" for line in lines)).out
        assert found.split("\n")[:-1] == [row[field] for row in chosen]


@pytest.fixture
def corpus(tmp_path):
    """Write a small corpus; returns the options that name it."""
    for name, text in (
        ("en", "It's a well-known ｃity.\nTokyo\n"),
        ("ja", "東京へ 行く。\n本 A1\n"),
    ):
        (tmp_path / f"train.{name}").write_text(text * 3, encoding="utf-8")
    return [
        "preprocess", "--source-lang", "en", "--target-lang", "ja", "--train", tmp_path / "train",
    ]  # fmt: skip


def test_preprocess_carries_model_and_normalisation(command_line, corpus, tmp_path):
    pytest.importorskip("vaporetto")
    corpus += ["--valid", tmp_path / "train", "--source-tokenizer", "moses", "--aggressive"]
    corpus += ["--no-escape", "--source-normalize", "wat-half-width", "--target-tokenizer", "kytea"]
    corpus += [*KYTEA, "--target-normalize", "wat-width"]
    for workers in (1, 2):
        result = command_line(*corpus, "--workers", workers, "--out", tmp_path / f"out{workers}")
        assert (result.code, result.out) == (0, "")
    prepared = open_prepared(tmp_path / "out1")
    pipeline = prepared.pipeline
    assert pipeline.source.words("It's a well-known ｃity.") == [
        "It", "'s", "a", "well", "@-@", "known", "city", ".",
    ]  # fmt: skip
    assert pipeline.target.words("本 A1 へ") == ["本", "Ａ", "１", "へ"]
    assert "Ａ" in pipeline.target.vocabulary.tokens
    for file in (tmp_path / "out1").rglob("*"):
        if file.is_file():
            other = tmp_path / "out2" / file.relative_to(tmp_path / "out1")
            assert file.read_bytes() == other.read_bytes()
    like = [
        "preprocess",
        "--source-lang",
        "en",
        "--target-lang",
        "ja",
        "--test",
        tmp_path / "train",
    ]
    again = command_line(*like, "--like", tmp_path / "out1", "--out", tmp_path / "again")
    assert again.code == 0
    copy = open_prepared(tmp_path / "again").pipeline
    assert copy.describe() == pipeline.describe()


def test_preprocess_refuses_a_bad_model(command_line, corpus, tmp_path):
    pytest.importorskip("vaporetto")
    model = tmp_path / "bad.bin"
    model.write_bytes(TINY.read_bytes()[:100])
    corpus += ["--target-tokenizer", "kytea", "--kytea-model", model, "--out", tmp_path / "out"]
    result = command_line(*corpus)
    assert (result.code, result.out) == (1, "")
    assert f"{model}: a damaged KyTea model" in result.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target-tokenizer", "kytea"], "--target-tokenizer kytea needs --kytea-model FILE"),
        (["--kytea-model", "m"], "--kytea-model m has no effect"),
        (["--aggressive"], "--aggressive has no effect"),
        (["--no-escape"], "--no-escape has no effect"),
        (["--like", "p", "--source-normalize", "nfkc"], "--source-normalize nfkc has no effect"),
        (["--source-normalize", "nfd"], "'nfd' is not one of"),
    ],
)
def test_preprocess_refuses_options_that_do_not_fit(
    command_line, corpus, tmp_path, options, message
):
    result = command_line(*corpus, "--out", tmp_path / "out", *options)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert message in result.err
