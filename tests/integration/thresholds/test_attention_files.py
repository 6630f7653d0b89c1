"""Attention files, and unknown words that are replaced."""

from __future__ import annotations

import json

import pytest
from capitals import KINDS, ODD_LINES, PLACE, SMALL_TAU

import nmtflex
from nmtflex.errors import OptionError

pytestmark = pytest.mark.integration


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", KINDS)
def test_the_attention_file_has_a_line_for_each(run_of, translate, tmp_path, kind):
    run, path = run_of(kind), tmp_path / "attention.jsonl"
    tau = ["--tau", SMALL_TAU] if kind == "flexible" else []
    options = ["--beam", 3, "--batch-sentences", 3, "--buffer", 5, *tau]
    plain, _ = translate(run, ODD_LINES, "--format", "json", *options)
    written, _ = translate(run, ODD_LINES, "--format", "json", "--attention-output", path, *options)
    assert written == plain
    lines = path.read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    assert len(lines) == len(ODD_LINES)
    for source, line, translation in zip(ODD_LINES, lines, written, strict=True):
        found, best = json.loads(line), json.loads(translation)["translations"][0]
        assert found["source"] == [word for word in source.replace("\t", " ").split(" ") if word]
        assert found["score"] == best["score"]
        if not source.strip():
            assert (found["target"], found["computed"], found["weights"]) == ([], None, None)
            continue
        assert found["target"] == [*best["tokens"], "</s>"]
        length, steps = len(found["source"]), len(found["target"])
        assert len(found["computed"]) == steps
        if kind == "none":
            assert found["weights"] is None
            continue
        assert len(found["weights"]) == steps
        assert {len(row) for row in found["weights"]} == {length}
        if kind == "flexible":
            widths = zip(found["window_start"], found["window_stop"], strict=True)
            assert [stop - start for start, stop in widths] == found["computed"]
            assert all(0 < gate < 1 for gate in found["gate"])


def test_flexible_lines_show_the_threshold(flexible, translate, tmp_path):
    computed = []
    for tau in ("0", "inf"):
        path = tmp_path / tau
        translate(flexible, ["a b c d e f"], "--tau", tau, "--attention-output", path)
        computed.append(set(json.loads(path.read_text())["computed"]))
    assert computed == [{1}, {6}]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "none"])
def test_unknown_words_come_from_the_source(run_of, translate, kind):
    """Most words of the training targets are unknown, so that is what the model writes."""
    run, lines = run_of(kind), ["zebra", "quagga zebra okapi", "a b zebra", "", "a"]
    plain, _ = translate(run, lines, "--beam", 1)
    filled, _ = translate(run, lines, "--beam", 1, "--replace-unk")
    assert "<unk>" in plain[0].split()
    assert "<unk>" not in " ".join(filled).split()
    for line, before, after in zip(lines, plain, filled, strict=True):
        pairs = list(zip(before.split(), after.split(), strict=True))
        assert all(old == new for old, new in pairs if old != "<unk>")
        assert all(new in line.split() for old, new in pairs if old == "<unk>")
    assert "zebra" in filled[0].split()


def test_unknown_words_under_another_name(flexible, translate, evaluate, command_line, tmp_path):
    lines = ["zebra", "quagga zebra okapi", "a b zebra", "", "a"]
    plain, _ = translate(flexible, lines)
    named, _ = translate(flexible, lines, "--unk", "UNK")
    assert "<unk>" in plain[0].split()
    assert named == [line.replace("<unk>", "UNK") for line in plain]
    out = tmp_path / "out"
    evaluate(flexible, "--unk", "UNK", "--output", out, "--max-length", 12)
    assert "UNK" in out.read_text().split()
    assert "<unk>" not in out.read_text()
    for word in ("", " ", "not known"):
        outcome = command_line("translate", flexible, "--unk", word, *PLACE)
        message = f"nmtflex: error: --unk must be a word without spaces, not {word!r}\n"
        assert (outcome.code, outcome.err) == (2, message)


def test_the_word_is_the_one_that_weighs_most(flexible, translate, tmp_path):
    path, lines = tmp_path / "attention", ["quagga zebra okapi tapir", "a quagga"]
    options = ["--replace-unk", "--tau", "0.4", "--attention-output", path]
    filled, _ = translate(flexible, lines, *options)
    count = 0
    for line, text, record in zip(lines, filled, path.read_text().splitlines(), strict=True):
        found = json.loads(record)
        for word, token, weights in zip(
            text.split(), found["target"], found["weights"], strict=False
        ):
            if token == "<unk>":
                count += 1
                assert word == line.split()[weights.index(max(weights))]
    assert count


def test_unknown_words_need_weights(run_of, command_line):
    run = run_of("none")
    outcome = command_line("translate", run, "--replace-unk", *PLACE)
    assert (outcome.code, outcome.out) == (2, "")
    message = f"--replace-unk needs weights over source positions, and {run} has --attention none"
    assert f"nmtflex: error: {message}" in outcome.err
    with pytest.raises(OptionError, match="--replace-unk needs weights over source positions"):
        nmtflex.load(run, replace_unk=True, device="cpu", threads=1)


def test_evaluation_takes_replaced_words(flexible, evaluate, tmp_path):
    out = tmp_path / "out"
    evaluate(flexible, "--replace-unk", "--output", out, "--max-length", 12)
    assert "<unk>" not in out.read_text().split()


def test_the_attention_file_overwrites_neither_input_nor_output(flexible, command_line, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a b\nc\n")
    output.write_text("old\n")
    files = ["-i", source, "-o", output, *PLACE]
    for taken in (source, output):
        outcome = command_line("translate", flexible, *files, "--attention-output", taken)
        assert outcome.code == 2
        assert f"--attention-output {taken}" in outcome.err
        assert source.read_text() == "a b\nc\n"
        assert output.read_text() == "old\n"


def test_an_attention_file_that_cannot_be_made_keeps_the_output(flexible, command_line, tmp_path):
    source, output = tmp_path / "in", tmp_path / "out"
    source.write_text("a b\n")
    output.write_text("old\n")
    wanted = tmp_path / "no" / "file"
    outcome = command_line(
        "translate", flexible, "-i", source, "-o", output, "--attention-output", wanted, *PLACE
    )
    assert outcome.code in (1, 2)
    assert str(wanted) in outcome.err or str(wanted.parent) in outcome.err
    assert output.read_text() == "old\n"
