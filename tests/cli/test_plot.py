"""nmtflex plot: every kind of figure from runs, and what it refuses."""

from __future__ import annotations

import builtins
import json
import math

import pytest
from drawings import VALID, texts_of, write_metrics

pytest.importorskip("matplotlib")

from nmtflex.config import MemoryConfig
from nmtflex.evaluation.sweep import Point, as_csv
from nmtflex.figures import fonts

ONE_THREAD = ("--threads", 1)
POINTS = [Point(0.5, 20.0, None, 2.0, 3.0, 100), Point(math.inf, 30.0, 0.5, 9.0, 9.0, 100)]


# What each kind writes that only it does, of a sentence of the mechanisms that have such a thing.
OF_SENTENCE = [
    ("attention", "global", "attention weight (0 to 1)"),
    ("attention", "local-m", "attention weight (0 to 1)"),
    ("attention", "local-p", "attention weight (0 to 1)"),
    ("attention", "flexible", "(0 open, 1 strict)"),
    ("attention", "memory", "attention weight (Σ α β over the slots)"),
    ("gate", "flexible", "Gate of flexible attention by step"),
    ("focus", "flexible", "the centre of the next window"),
    ("focus", "local-m", "the centre of the window"),
    ("focus", "local-p", "the centre of the window"),
    ("attention", "abc", "attention weight (Σ α β over the slots)"),
    ("attention", "rfa", "Attention weights of each target token"),
    ("focus", "monotonic", "where the scan stopped"),
    ("attention", "mocha", "attention weight (0 to 1)"),
    ("memory", "memory", "α (0 to 1)"),
    ("memory", "abc", "α (0 to 1)"),
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("kind", "mechanism", "words"), OF_SENTENCE)
def test_figures_of_a_sentence(draw, run_of, kind, mechanism, words):
    text = draw(run_of(mechanism), "--kind", kind, "--sentence", "c a b h", *ONE_THREAD)
    assert words in text.replace("\n", " ")
    lines = text.split("\n")
    drawn = [line for line in lines if line in set("abch")]
    assert drawn == ([] if kind == "gate" else ["c", "a", "b", "h"])
    assert "</s>" in lines
    caption = " ".join(lines)
    decoder = "luong" if mechanism == "memory" else "bahdanau"
    for part in (mechanism, "a given sentence", f"{decoder} decoder", "beam 5", "update 1"):
        assert part in caption


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("mechanism", "title"),
    [
        *((name, "Attention weights of each target token") for name in ("global", "local-p")),
        ("flexible", "Attention weights of each target token"),
        ("memory", "Memory slots, filled and read"),
        ("abc", "Memory slots, filled and read"),
    ],
)
def test_without_a_kind_a_sentence_is_drawn_as_fits_the_mechanism(draw, run_of, mechanism, title):
    assert title in draw(run_of(mechanism), "--sentence", "a b", *ONE_THREAD).split("\n")


def test_an_option_of_one_kind_chooses_it(draw, command_line, tiny_run):
    write_metrics(tiny_run, VALID)
    by_time = draw(tiny_run, "--x", "time")
    assert by_time == draw(tiny_run, "--kind", "learning", "--x", "time")
    assert by_time != draw(tiny_run)
    outcome = command_line("plot", tiny_run, "--edges", "5")  # of two kinds
    assert outcome.code == 2
    assert "--edges belongs to --kind length and seconds" in outcome.err


def test_a_focus_without_a_window_is_one_line(command_line, run_of, monkeypatch):
    from nmtflex.figures import plots

    true_look = plots.look_at

    def look_at(*arguments):
        looked = true_look(*arguments)
        return looked._replace(trace=looked.trace._replace(window_start=None, window_stop=None))

    monkeypatch.setattr(plots, "look_at", look_at)
    run = run_of("local-m")
    outcome = command_line("plot", run, "--kind", "focus", "--sentence", "a b", *ONE_THREAD)
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    assert "--kind focus needs a window" in outcome.err
    assert str(run) in outcome.err


def test_a_sentence_of_the_split(draw, tiny_run):
    text = draw(tiny_run, "--index", 2, "--beam", 2, *ONE_THREAD)
    lines = text.split("\n")
    assert [line for line in lines if line in "abc"] == ["c", "a", "b", "b"]
    assert "test, sentence 2" in text
    assert "beam 2" in text
    assert "CPS 4, 4 source tokens" in text.replace("\n", " ")


def test_a_threshold_narrows_the_window_and_is_told(draw, run_of, command_line, tmp_path):
    run = run_of("flexible", sigma=0.5)
    sentence = ("--sentence", "a b c d e f g h", *ONE_THREAD)
    text = draw(run, *sentence, "--tau", 0.25).replace("\n", " ")
    assert "τ = 0.25" in text
    assert "grey: not computed" in text
    focus = ("plot", run, "--kind", "focus", *sentence, "--output", tmp_path / "focus.svg")
    warning = "without --tau every position is computed: the window is the whole source"
    assert warning in command_line(*focus).err
    assert warning not in command_line(*focus, "--tau", "auto").err


@pytest.mark.slow
def test_japanese_german_and_greek_in_every_format(command_line, make_tiny_run, tmp_path):
    run = make_tiny_run("日本語_run", MemoryConfig(K=3))
    sentence = "猫 Straße ἀλήθεια $x$ <b> \x1b 😀"
    for ending, begin in ((".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")):
        path = tmp_path / f"figure{ending}"
        result = command_line("plot", run, "--sentence", sentence, "--output", path, *ONE_THREAD)
        assert (result.code, result.err) == (0, f"nmtflex: wrote {path}\n")
        assert path.read_bytes().startswith(begin)
    found = texts_of(tmp_path / "figure.svg")
    assert [one for one in found if one in [*sentence.split(), "\ufffd"]] == [
        "猫", "Straße", "ἀλήθεια", "$x$", "<b>", "\ufffd", "😀",
    ]  # fmt: skip
    assert "日本語_run" in " ".join(found)


def test_glyphs_that_no_font_has_are_named(command_line, tiny_run, tmp_path, monkeypatch):
    had = fonts._code_points
    monkeypatch.setattr(fonts, "_code_points", lambda path: had(path) - {ord("猫")})
    for name in ("figure.png", "figure.svg"):
        path = tmp_path / name
        result = command_line("plot", tiny_run, "--sentence", "猫", "--output", path, *ONE_THREAD)
        assert (result.code, path.exists()) == (0, True)
        *warnings, wrote = result.err.splitlines()
        assert wrote == f"nmtflex: wrote {path}"
        assert len(warnings) == (name == "figure.png")
        for warning in warnings:
            assert warning.startswith(f"nmtflex: warning: {path}: ")
            assert "'猫' (U+732B)" in warning
            assert ".svg" in warning


def test_position_encodings(draw, run_of):
    text = draw(run_of("memory", K=5), "--kind", "encoding")
    assert "factor l of the slot's logit" in text
    assert "memory · K = 5 · longest source 10 tokens" in text


def test_trade_offs_of_tables_and_of_runs(draw, run_of, tmp_path):
    run = run_of("flexible")
    for split in ("valid", "test"):
        (run / f"sweep-{split}-beam5.csv").write_text(as_csv(POINTS))
    (tmp_path / "mine.csv").write_text(as_csv(POINTS))
    text = draw(run / "sweep-test-beam5.csv")
    assert {"BLEU against computations, by threshold", "no threshold", "τ = 0.5"} <= set(
        text.split("\n")
    )
    assert "flexible · test · beam 5 · flexible attention · bahdanau decoder" in text
    text = draw(run, "--kind", "trade-off")
    assert {"valid", "test"} <= set(text.split("\n"))
    assert "flexible · beam 5" in text
    assert "mine" in draw(tmp_path / "mine.csv")


def test_trade_offs_of_tables_that_say_what_they_are_of(draw, tmp_path):
    for split in ("valid", "test"):
        (tmp_path / f"{split[0]}.csv").write_text(as_csv(POINTS, ("flex", split, 5)))
    text = draw(tmp_path / "v.csv", tmp_path / "t.csv")
    assert text.split("\n")[-3:] == ["flex · beam 5", "valid", "test"]
    (tmp_path / "again.csv").write_text(as_csv(POINTS, ("flex", "test", 5)))
    text = draw(tmp_path / "t.csv", tmp_path / "again.csv")
    assert text.split("\n")[-3:] == ["flex · test · beam 5", "t", "again"]


@pytest.mark.parametrize(
    ("kind", "axis", "more"),
    [("length", "BLEU (0 to 100)", ()),
     ("seconds", "decoding time (milliseconds a sentence)", ("--repeats", 1))],
)  # fmt: skip
def test_figures_by_source_length(draw, run_of, kind, axis, more):
    runs = [run_of("global"), run_of("flexible")]
    options = ("--kind", kind, "--edges", "3,8", "--beam", 2, "--tau", 0.5, *more, *ONE_THREAD)
    text = draw(*runs, *options)
    lines = text.split("\n")
    assert axis in lines
    assert "1-3" in text
    assert "4-8" in text
    assert "n = 1" in text
    assert ">8" not in text
    assert "τ = 0.5" in text
    assert ("batches of 64" in text) == (kind == "seconds")


def test_the_usual_place_is_beside_what_is_drawn(command_line, tiny_run, tmp_path, monkeypatch):
    assert command_line("plot", tiny_run, "--sentence", "a", *ONE_THREAD).code == 0
    assert (tiny_run / "attention.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "mine.csv").write_text(as_csv(POINTS))
    monkeypatch.chdir(tmp_path)
    result = command_line("plot", "mine.csv")
    assert (result.code, result.err) == (0, "nmtflex: wrote trade-off.png\n")
    assert (tmp_path / "trade-off.png").exists()


OWNERS = {
    "attention": "weights over source positions, which every mechanism but none has",
    "gate": "a gate: --attention flexible or --attend-every gate",
    "focus": "a focus, which --attention flexible, local-m, local-p, monotonic and mocha have",
    "memory": "memory slots, which --attention memory and abc have",
}


@pytest.mark.parametrize(
    ("kind", "mechanism", "flags"),
    [
        ("attention", "none", "--attention none"),
        ("gate", "global", "--attention global --score additive"),
        ("gate", "memory", "--attention memory"),
        ("focus", "memory", "--attention memory"),
        ("focus", "none", "--attention none"),
        ("memory", "flexible", "--attention flexible --score additive"),
    ],
)
def test_a_mechanism_without_such_a_thing(command_line, run_of, tmp_path, kind, mechanism, flags):
    run = run_of(mechanism)
    options = ("--kind", kind, "--sentence", "a b", *ONE_THREAD)
    result = command_line("plot", run, *options, "--output", tmp_path / "no.png")
    assert (result.code, result.out) == (2, "")
    message = f"--kind {kind} needs {OWNERS[kind]}; {run} has {flags}"
    assert result.err == f"nmtflex: error: {message}\n"
    assert not (tmp_path / "no.png").exists()


def test_without_attention_no_sentence_can_be_drawn(command_line, run_of):
    run = run_of("none")
    result = command_line("plot", run, "--sentence", "a", *ONE_THREAD)
    assert result.code == 2
    assert f"{OWNERS['attention']}; {run} has --attention none" in result.err


@pytest.mark.parametrize(
    ("mechanism", "options", "flags"),
    [
        ("global", {}, "--attention global --score additive"),
        ("memory", {"position_encoding": False}, "--attention memory --no-position-encoding"),
    ],
)
def test_a_run_without_position_encodings(command_line, run_of, mechanism, options, flags):
    run = run_of(mechanism, **options)
    result = command_line("plot", run, "--kind", "encoding")
    assert result.code == 2
    needs = "--kind encoding needs position encodings, which --attention memory has"
    assert result.err == f"nmtflex: error: {needs}; {run} has {flags}\n"


def test_a_run_without_metrics_or_sweep(command_line, tiny_run, tmp_path):
    result = command_line("plot", tiny_run)
    assert result.code == 1
    assert f"{tiny_run} has no metrics.csv" in result.err
    result = command_line("plot", tiny_run, "--kind", "trade-off")
    assert result.code == 1
    assert f"{tiny_run} has no sweep-*.csv; make one with: nmtflex sweep {tiny_run}" in result.err
    write_metrics(tiny_run, VALID.replace("0.25", ""))
    result = command_line("plot", tiny_run, "--kind", "learning", "--y", "bleu,gate")
    assert result.code == 2
    assert f"--y gate: the metrics of {tiny_run} have no gate" in result.err


def test_no_run_at_all(command_line, tmp_path):
    for arguments in ((), ("--sentence", "a"), ("--kind", "encoding")):
        result = command_line("plot", tmp_path / "missing", *arguments)
        assert result.code == 1
        assert f"{tmp_path / 'missing'}: no such run folder" in result.err


def test_sentences_that_are_not_there(command_line, tiny_run):
    for arguments, code, message in (
        (("--index", 3), 2, f"--index 3: test of {tiny_run} has 3 sentences, 0 to 2"),
        (("--index", 1), 1, "the sentence '' has no words, so there are no steps to draw"),
        (("--sentence", "  "), 1, "the sentence '  ' has no words"),
        (("--index", 0, "--split", "valid"), 1, "has no split 'valid'; there is test"),
        (("--kind", "length", "--split", "valid"), 1, "has no split 'valid'; there is test"),
    ):
        result = command_line("plot", tiny_run, *arguments, *ONE_THREAD)
        assert (result.code, result.out) == (code, "")
        assert message in result.err


@pytest.mark.parametrize(("text", "words"), [("", "is empty"), ("\n \n", "has words")])
@pytest.mark.parametrize("kind", ["length", "seconds"])
def test_an_empty_split(command_line, tiny_run, kind, text, words):
    for side in ("source", "target"):
        (tiny_run / "raw" / f"test.{side}.txt").write_text(text)
    result = command_line("plot", tiny_run, "--kind", kind, *ONE_THREAD)
    assert result.code == 1
    assert words in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "a.jpg"], "--output a.jpg ... '.jpg' ... .png, .svg, .pdf"),
        (["--output", "figure"], "--output figure ... '' ... .png, .svg, .pdf"),
        (["--output", "no/a.png"], "--output no/a.png: there is no folder no"),
        (["--index", "-1"], "--index must be at least 0, not -1"),
        (
            ["--index", "1", "--sentence", "a b"],
            "--index 1 ... --sentence 'a b'",
        ),
        (["--split", "valid"], "--split valid needs --index N"),
        (["--kind", "gate"], "--kind gate draws a sentence: give --sentence TEXT or --index N"),
        (["--kind", "gate", "--x", "time"], "--x belongs to --kind learning, not to gate"),
        (["--kind", "length", "--index", "1"], "--index belongs to --kind auto and attention"),
        (["--kind", "gates"], "'gates'"),
        (
            ["--kind", "learning", "--y", "bleu,speed"],
            "--y ... loss, perplexity, bleu, gate, cps ... 'speed'",
        ),
        (
            ["--kind", "length", "--edges", "10,ten"],
            "--edges ... at least 1 ... '10,ten'",
        ),
        (["--kind", "seconds", "--edges", "5,5"], "--edges ... '5,5'"),
        (["--kind", "seconds", "--edges", "0,5"], "--edges ... '0,5'"),
        (["--kind", "seconds", "--repeats", "0"], "--repeats must be at least 1, not 0"),
        (["--beam", "2"], "--beam 2 "),
        (["--kind", "encoding", "--tau", "1"], "--tau 1 "),
        (["--kind", "trade-off", "--threads", "2"], "--threads 2 "),
        (["--replace-unk"], "--replace-unk "),
        (
            ["--sentence", "a", "--replace-unk"],
            "--replace-unk has no effect",
        ),
        (["--index", "0", "--batch-sentences", "2"], "--batch-sentences 2 has no effect on one"),
        (["--sentence", "a", "--tau", "0.5"], "--tau 0.5 needs flexible attention, and"),
        (["--kind", "length", "--tau", "0.5"], "--tau 0.5 ... flexible attention"),
    ],
)
def test_wrong_command_lines(command_line, tiny_run, arguments, message):
    result = command_line("plot", tiny_run, *arguments)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err.startswith("nmtflex: error: ")
    assert [value for value in message.split(" ... ") if value not in result.err] == []


@pytest.mark.parametrize(
    ("arguments", "what"), [(["--sentence", "a"], "a sentence"), (["--kind", "encoding"], "--kind")]
)
def test_what_is_drawn_from_one_run(command_line, arguments, what):
    result = command_line("plot", "runs/a", "runs/b", *arguments)
    assert result.code == 2
    assert f"nmtflex: error: {what}" in result.err
    assert result.err.endswith(" 2: runs/a, runs/b\n")


def test_options_from_a_file(command_line, tiny_run, tmp_path):
    file = tmp_path / "plot.toml"
    output = json.dumps(str(tmp_path / "a.svg"))
    file.write_text(f'output = {output}\n[kind]\nkind = "attention"\nsentence = "h g"\n')
    assert command_line("plot", tiny_run, "--config", file, *ONE_THREAD).code == 0
    assert {"h", "g"} <= set(texts_of(tmp_path / "a.svg"))


def test_without_matplotlib_the_remedy_is_named(command_line, tiny_run, monkeypatch):
    true_import = builtins.__import__

    def without(name, *rest, **named):
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(f"No module named {name!r}")
        return true_import(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    result = command_line("plot", tiny_run, "--sentence", "a")
    assert (result.code, result.out) == (2, "")
    remedy = "figures need matplotlib; install it with: pip install matplotlib matplotlib-fontja"
    assert result.err == f"nmtflex: error: {remedy}\n"
