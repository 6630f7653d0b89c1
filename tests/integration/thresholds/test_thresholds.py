"""Thresholds and CPS, through the commands."""

from __future__ import annotations

import json
import math

import pytest
from capitals import KINDS, ODD_LINES, PLACE, SMALL_TAU, mean_length, source_lines

import nmtflex
from nmtflex.errors import OptionError

pytestmark = pytest.mark.integration


def test_an_infinite_threshold_is_none(flexible, evaluate, translate, corpus):
    plain, infinite = evaluate(flexible), evaluate(flexible, "--tau", "inf")
    assert plain["cps"] == pytest.approx(mean_length(source_lines(corpus, "test")))
    assert plain["encoding_computations"] == 0
    assert "tau" not in plain
    assert infinite.pop("tau") == "inf"
    for found in (plain, infinite):
        assert found.pop("seconds") > found.pop("decoding_seconds") > 0
    assert infinite == plain
    lines = translate(flexible, ODD_LINES)[0]
    assert translate(flexible, ODD_LINES, "--tau", "inf")[0] == lines


def test_a_small_threshold_computes_less(flexible, evaluate, corpus):
    found = [evaluate(flexible, "--tau", tau) for tau in ("0", SMALL_TAU, "auto", 100000)]
    cps = [scores["cps"] for scores in found]
    assert cps[0] == 1.0
    assert cps == sorted(cps)
    assert cps[1] < cps[2] <= cps[3] == pytest.approx(mean_length(source_lines(corpus, "test")))
    mean = mean_length(source_lines(corpus, "valid"))
    assert found[2]["tau"] == pytest.approx(math.log10(mean), rel=1e-12)
    assert found[1]["tau"] == SMALL_TAU


def test_the_table_names_the_computations(flexible, run_of, command_line):
    for run, encoding in ((flexible, False), (run_of("memory"), True)):
        outcome = command_line("eval", run, "--beam", 2, *PLACE)
        rows = [line.split("\t") for line in outcome.out.splitlines()]
        names = ["metric", "BLEU", "chrF2", "CPS"] + ["encoding"] * encoding
        assert [row[0] for row in rows] == names
        assert float(rows[3][1]) > 1


def test_memory_reports_its_encoding_apart(run_of, evaluate, corpus):
    found = evaluate(run_of("memory"))
    assert found["cps"] == 3
    mean = mean_length(source_lines(corpus, "test"))
    assert found["encoding_computations"] == pytest.approx(3 * mean)


def test_score_under_a_threshold_is_what_the_search_reports(
    flexible, command_line, translate, corpus, tmp_path
):
    sources = source_lines(corpus, "test")
    options = ["--tau", SMALL_TAU, "--dtype", "float64"]
    found, _ = translate(flexible, sources, "--format", "json", *options)
    best = [json.loads(line)["translations"][0] for line in found]
    # The text "<unk>" of an output would be read as the one word, unknown too.
    (tmp_path / "s").write_text("".join(f"{line}\n" for line in sources))
    (tmp_path / "t").write_text("".join(f"{item['text']}\n" for item in best))
    files = ["--source", tmp_path / "s", "--target", tmp_path / "t", "--dtype", "float64", *PLACE]

    def scores(*more) -> list[float]:
        outcome = command_line("score", flexible, *files, *more)
        assert outcome.code == 0, outcome.err
        return [float(line) for line in outcome.out.splitlines()]

    expected = [item["log_probability"] for item in best]
    assert scores("--tau", SMALL_TAU) == pytest.approx(expected, rel=1e-9)
    assert scores("--tau", "inf") == scores()
    assert scores() != pytest.approx(expected, rel=1e-4)


def test_a_sweep_needs_flexible_attention(run_of, command_line):
    run = run_of("global")
    outcome = command_line("sweep", run, *PLACE)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert f"{run} has global" in outcome.err


@pytest.mark.parametrize("command", ["translate", "eval", "score"])
def test_a_threshold_needs_flexible_attention(run_of, command_line, feed, command):
    run = run_of("global")
    feed(["a\tA"])
    outcome = command_line(command, run, *PLACE, "--tau", 1.5)
    assert (outcome.code, outcome.out) == (2, "")
    message = f"--tau 1.5 needs flexible attention, and {run} has global; leave it out"
    assert f"nmtflex: error: {message}" in outcome.err


@pytest.mark.parametrize("command", ["translate", "eval", "score"])
@pytest.mark.parametrize("tau", ["small", "-0.5", "nan", "1,2"])
def test_a_threshold_that_is_none_is_refused(flexible, command_line, feed, command, tau):
    feed(["a\tA"])
    outcome = command_line(command, flexible, *PLACE, "--tau", tau)
    assert (outcome.code, outcome.out) == (2, "")
    message = f"--tau must be a number of at least 0, inf or auto, not {tau!r}"
    assert f"nmtflex: error: {message}" in outcome.err


def test_two_files_have_no_threshold(command_line, corpus):
    file = corpus / "test.up"
    outcome = command_line("eval", "--hypothesis", file, "--reference", file, "--tau", 1.5)
    assert outcome.code == 2
    assert "--tau 1.5 " in outcome.err


@pytest.mark.parametrize("spelling", ["1.2", '"1.2"', "2", '"inf"'])
def test_a_threshold_in_a_file(flexible, evaluate, tmp_path, spelling):
    (tmp_path / "options.toml").write_text(f"tau = {spelling}\n")
    found = evaluate(flexible, "--config", tmp_path / "options.toml")
    tau = spelling.strip('"')
    assert found["tau"] == (tau if tau == "inf" else float(tau))
    assert found["cps"] == evaluate(flexible, "--tau", tau)["cps"]
    flag = evaluate(flexible, "--config", tmp_path / "options.toml", "--tau", 0.3)
    assert flag["tau"] == 0.3


def test_a_wrong_threshold_in_a_file_is_named(flexible, command_line, tmp_path):
    (tmp_path / "options.toml").write_text("tau = -3\n")
    outcome = command_line("eval", flexible, "--config", tmp_path / "options.toml")
    assert outcome.code == 2
    assert "--tau must be a number of at least 0, inf or auto, not '-3'" in outcome.err


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
def test_stats_are_those_of_an_evaluation(run_of, translate, evaluate, corpus, tmp_path, kind):
    run = run_of(kind)
    tau = ["--tau", "0.3"] if kind == "flexible" else []
    scores = evaluate(run, *tau, "--max-length", 12)
    _, err = translate(run, source_lines(corpus, "test"), "--stats", "--beam", 2, *tau)
    traces = ["--attention-output", tmp_path / "attention"]  # these are not counted
    _, beside = translate(run, source_lines(corpus, "test"), "--stats", "--beam", 2, *tau, *traces)
    cps, encoding = scores["cps"], scores["encoding_computations"]
    line = f"CPS {cps:.2f} (score computations per step)"
    if encoding:
        line += f", and {encoding:.1f} per sentence in the encoder"
    line = f"nmtflex: {line}\n"
    assert line in err
    assert line in beside


def test_stats_of_nothing_are_left_out(flexible, translate):
    assert "CPS" not in translate(flexible, ["", " "], "--stats")[1]
    assert "CPS" not in translate(flexible, ["a b"])[1]


def test_the_python_interface(flexible, translate):
    for tau in (1.2, "1.2"):
        translator = nmtflex.load(
            flexible, tau=tau, replace_unk=True, max_length=12, device="cpu", threads=1
        )
        found = translator.translate(ODD_LINES)
        assert found == translate(flexible, ODD_LINES, "--tau", "1.2", "--replace-unk")[0]
    assert found[1] == found[2] == ""
    assert nmtflex.load(flexible, tau=math.inf, device="cpu", threads=1).translate(["a b"])
    with pytest.raises(OptionError, match=r"--tau must be .* not '-1'"):
        nmtflex.load(flexible, tau=-1)


@pytest.mark.parametrize("tau", [1e-05, None])
def test_any_number_and_none_are_thresholds_of_python(flexible, tau):
    """A small float is spelt with an exponent; None is what the options themselves have."""
    translator = nmtflex.load(flexible, tau=tau, max_length=5, device="cpu", threads=1)
    assert translator.translate(["", "a b"])[0] == ""


def test_a_small_number_may_have_an_exponent(flexible, evaluate, tmp_path):
    (tmp_path / "options.toml").write_text("tau = 1e-5\n")
    found = evaluate(flexible, "--config", tmp_path / "options.toml")
    assert found["tau"] == evaluate(flexible, "--tau", "1e-5")["tau"] == 1e-05


def test_alone_and_in_a_batch_a_line_is_the_same(flexible, translate, corpus):
    lines = [*ODD_LINES, *source_lines(corpus, "test")]
    options = ["--tau", SMALL_TAU, "--dtype", "float64", "--format", "json", "--n-best", 3]
    together, _ = translate(flexible, lines, *options)
    alone, _ = translate(flexible, lines, *options, "--batch-sentences", 1)
    for one, other in zip(together, alone, strict=True):
        first, second = (json.loads(item)["translations"] for item in (one, other))
        assert [best["tokens"] for best in first] == [best["tokens"] for best in second]
        assert [best["score"] for best in first] == pytest.approx(
            [best["score"] for best in second], rel=1e-9
        )
