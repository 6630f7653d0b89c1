from __future__ import annotations

import io
import json
import sys

import pytest

import nmtflex

ONE_THREAD = ("--threads", 1)  # tiny tensors on several are slow where other programs run


@pytest.fixture
def files(tmp_path):
    """Write a source and a target file."""

    def write(source: str, target: str):
        for name, content in (("s.aa", source), ("t.bb", target)):
            (tmp_path / name).write_text(content, encoding="utf-8")
        return tmp_path / "s.aa", tmp_path / "t.bb"

    return write


def feed(monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(content.encode()))
    monkeypatch.setattr(sys, "stdin", stdin)


def test_the_search_reports_what_score_gives(command_line, files, tiny_run) -> None:
    lines = ["a b c", "h", "c d e f g h"]
    best = nmtflex.load(tiny_run, threads=1, max_length=8).n_best(lines, 2)
    sources = "".join(f"{line}\n" for line, found in zip(lines, best, strict=True) for _ in found)
    translations = [translation for found in best for translation in found]
    source, target = files(sources, "".join(f"{best.text}\n" for best in translations))
    result = command_line("score", tiny_run, *ONE_THREAD, "--source", source, "--target", target)
    assert result.code == 0
    known = [t for t in translations if "<unk>" not in t.tokens]
    found = [float(line) for line in result.out.splitlines()]
    assert len(found) == len(translations) == 6
    expected = [t.log_probability for t in translations]
    assert known
    assert found == pytest.approx(expected, rel=1e-4)


def test_8_bits_are_those_of_the_search(command_line, tiny_run, monkeypatch) -> None:
    [[best]] = nmtflex.load(tiny_run, threads=1, max_length=8, int8=True).n_best(["a b c"], 1)
    found = []
    for option in ([], ["--int8"]):
        feed(monkeypatch, f"a b c\t{best.text}\n")
        found.append(float(command_line("score", tiny_run, *ONE_THREAD, *option).out))
    assert found[0] != found[1] == pytest.approx(best.log_probability, rel=1e-4)
    feed(monkeypatch, "a\tA\n")
    refused = command_line("score", tiny_run, *ONE_THREAD, "--int8", "--dtype", "float64")
    message = "nmtflex: error: --int8 is for the CPU in float32, not for float64; leave one out\n"
    assert (refused.code, refused.err) == (2, message)


def test_columns_on_standard_input_give_the_same(
    command_line, files, tiny_run, monkeypatch
) -> None:
    source, target = files("a b\nc\n\n\n", "A\nB C\n\nA\n")
    by_files = command_line("score", tiny_run, *ONE_THREAD, "--source", source, "--target", target)
    feed(monkeypatch, "a b\tA\nc\tB C\n\t\n\tA\n")
    by_columns = command_line("score", tiny_run, *ONE_THREAD)
    assert by_columns.out == by_files.out
    assert by_files.out.splitlines()[2:] == ["0.0", "-inf"]


def test_per_token_divides_by_the_tokens_with_eos(command_line, tiny_run, monkeypatch) -> None:
    feed(monkeypatch, "a b\tA B C\n")
    total = float(command_line("score", tiny_run, *ONE_THREAD).out)
    feed(monkeypatch, "a b\tA B C\n")
    assert float(command_line("score", tiny_run, *ONE_THREAD, "--per-token").out) == pytest.approx(
        total / 4, abs=1e-6
    )


def test_json(command_line, tiny_run, monkeypatch) -> None:
    feed(monkeypatch, "a b\tA B C\n\tA\n")
    result = command_line("score", tiny_run, *ONE_THREAD, "--json")
    first, second = map(json.loads, result.out.splitlines())
    assert (first["index"], first["tokens"]) == (0, 4)
    assert first["log_probability"] == pytest.approx(4 * first["per_token"], rel=1e-12)
    assert second == {"index": 1, "log_probability": None, "per_token": None, "tokens": 2}


@pytest.mark.parametrize(
    ("source", "target", "counts"),
    [
        ("a\nb\nc\n", "A\n", ("3 lines", 1)),
        ("a\n", "A\nB\n", ("1 line", 2)),
        ("", "A\n", ("0 lines", 1)),
    ],
)
def test_different_line_counts(command_line, files, tiny_run, source, target, counts) -> None:
    source, target = files(source, target)
    result = command_line("score", tiny_run, *ONE_THREAD, "--source", source, "--target", target)
    assert result.code == 1
    assert f"{source} has {counts[0]} but {target} has {counts[1]}" in result.err


@pytest.mark.parametrize(("line", "columns"), [("a b", "1 column"), ("a\tb\tc", "3 columns")])
def test_a_line_without_two_columns(command_line, tiny_run, monkeypatch, line, columns) -> None:
    feed(monkeypatch, f"a\tA\n{line}\n")
    result = command_line("score", tiny_run, *ONE_THREAD)
    assert result.code == 1
    assert result.err == (
        f"nmtflex: error: standard input:2: expected source, tab, target, but found {columns}\n"
    )
    assert result.out.count("\n") == 1  # the line before has been scored


def test_options_that_do_not_fit(command_line, files, tiny_run) -> None:
    source, target = files("a\n", "A\n")
    result = command_line("score", tiny_run, *ONE_THREAD, "--source", source)
    assert result.code == 2
    assert f"--source {source} also needs --target FILE" in result.err
    result = command_line("score", tiny_run, *ONE_THREAD, "--target", target)
    assert f"--target {target} also needs --source FILE" in result.err
    result = command_line("score", tiny_run, *ONE_THREAD, "--per-token", "--json")
    assert result.code == 2
    assert "--per-token has no effect with --json" in result.err
