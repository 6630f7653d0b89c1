"""translate --verbose: alignments as text on standard error."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

import nmtflex
from nmtflex.cli import translate
from nmtflex.cli.alignment import COLOURS, alignment_text
from nmtflex.config import FlexibleConfig, MemoryConfig, NoneConfig
from nmtflex.decoding.alignment import Alignment

ONE_THREAD = ("--threads", 1)
LINES = "a b c\n\nh g\n"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in"
    path.write_text(LINES)
    return path


@pytest.mark.parametrize("attention", [FlexibleConfig(), MemoryConfig(K=3)])
def test_each_sentence_has_two_plain_lines(command_line, make_tiny_run, source, attention):
    run = make_tiny_run("run", attention)
    plain = command_line("translate", run, "-i", source, *ONE_THREAD)
    result = command_line("translate", run, "-i", source, *ONE_THREAD, "--verbose", "--buffer", 2)
    assert (result.code, result.out) == (0, plain.out)
    lines = [line for line in result.err.splitlines() if "warning: " not in line]
    assert "\x1b" not in result.err
    assert lines[0] == "0 source: a b c"
    assert lines[2:5:2] == ["1 source:", "2 source: h g"]
    assert lines[3] == "1 target:"
    words = [pair.split("←") for pair in lines[1].removeprefix("0 target:").split()]
    assert [word for word, _ in words] == result.out.splitlines()[0].split()
    assert {read for _, read in words} <= {"a", "b", "c"}
    assert "3 sentences in" in lines[6]
    assert len(lines) == 7


def test_the_words_are_those_of_the_greatest_weight(command_line, tiny_run, source):
    result = command_line("translate", tiny_run, "-i", source, *ONE_THREAD, "--verbose")
    translator = nmtflex.load(tiny_run, threads=1)
    [[best]] = translator.n_best(["a b c"], 1, trace=True)
    read = ["abc"[place] for place in best.trace.weights[:-1].argmax(1)]
    expected = " ".join(f"{word}←{one}" for word, one in zip(best.words, read, strict=True))
    assert result.err.splitlines()[1] == f"0 target: {expected}"


def test_only_the_best_translation_is_shown(command_line, tiny_run, source):
    options = ("--n-best", 3, "--format", "json", "--verbose")
    result = command_line("translate", tiny_run, "-i", source, *ONE_THREAD, *options)
    assert result.err.count("target:") == 3


def test_a_terminal_shows_what_belongs_together_in_one_colour():
    alignment = Alignment(["a", "b", "c"], ["x", "y", "z"], [2, 0, 2])
    text = alignment_text(7, alignment)
    assert text.plain == "7 source: a b c\n7 target: x←c y←a z←c"
    colours = {text.plain[span.start : span.end]: span.style for span in text.spans}
    assert colours == {
        "a": COLOURS[0], "y←a": COLOURS[0], "c": COLOURS[1], "x←c": COLOURS[1], "z←c": COLOURS[1],
    }  # fmt: skip


def test_a_terminal_is_given_colours_and_nothing_to_obey(
    command_line, tiny_run, tmp_path, monkeypatch
):
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system="standard", width=20)
    monkeypatch.setattr(translate, "stderr", console)
    source = tmp_path / "in"
    source.write_text("a \x1b]0;title\x07 [red]c " + "d " * 30)
    result = command_line("translate", tiny_run, "-i", source, *ONE_THREAD, "--verbose")
    assert result.code == 0
    text = out.getvalue()
    assert "\x1b[36m" in text
    assert "\x1b]" not in text
    assert "\ufffd]0;title\ufffd" in text
    assert "[red]c" in text


def test_without_attention_there_is_nothing_to_show(command_line, make_tiny_run, source, tmp_path):
    run, output = make_tiny_run("run", NoneConfig()), tmp_path / "out"
    output.write_text("kept")
    result = command_line("translate", run, "-i", source, "-o", output, "--verbose", *ONE_THREAD)
    assert (result.code, output.read_text()) == (2, "kept")
    assert result.err.startswith("nmtflex: error: --verbose needs")
    assert f"{run} has --attention none" in result.err
