"""nmtflex plot --kind learning: what caption and legend say of the runs."""

from __future__ import annotations

import pytest
from drawings import VALID, put_in_config, write_metrics

pytest.importorskip("matplotlib")

from nmtflex.config import FlexibleConfig


def test_learning_curves_are_drawn_where_there_is_no_sentence(draw, run_of):
    runs = [run_of("global"), run_of("flexible")]
    for run in runs:
        write_metrics(run, VALID)
    text = draw(*runs)
    assert {
        "Learning curves: loss, perplexity and BLEU by updates",
        "BLEU (0 to 100)",
        "updates",
    } <= set(text.split("\n"))
    assert "flexible, flexible attention" in text.replace(",\n", ", ")
    assert "bahdanau decoder · valid" in text
    text = draw(*runs, "--kind", "learning", "--x", "time", "--y", "gate, cps")
    assert "time of training and validation (minutes)" in text
    assert "mean gate (0 open, 1 strict)" in text
    assert "Learning curves: gate and CPS by time" in text
    assert "BLEU" not in text


@pytest.mark.parametrize(
    ("taus", "shared", "first", "second"),
    [
        ((None, "auto"), "", ", no threshold", ", τ = 0.6021"),
        (("0.5", "0.5"), " · τ = 0.5", "", ""),
        ((None, "inf"), "", "", ""),
    ],
)
def test_learning_curves_say_under_which_threshold_runs_were_validated(
    draw, make_tiny_run, taus, shared, first, second
):
    runs = [make_tiny_run(name, FlexibleConfig()) for name in ("flexible", "flexible2")]
    for run, tau in zip(runs, taus, strict=True):
        write_metrics(run, VALID)
        put_in_config(run, train={"tau": tau})
    text = draw(*runs, "--y", "bleu", "--kind", "learning")
    assert text.split("\n")[-3:] == [
        f"flexible attention · bahdanau decoder · valid{shared}",
        f"flexible{first}",
        f"flexible2{second}",
    ]


def test_a_threshold_that_is_none_is_a_damaged_config(command_line, run_of):
    run = run_of("flexible")
    write_metrics(run, VALID)
    put_in_config(run, train={"tau": "soon"})
    result = command_line("plot", run)
    assert result.code == 1
    assert result.err == f"nmtflex: error: {run / 'config.json'}: damaged: 'tau' is 'soon'\n"


def test_the_thin_line_is_explained_where_there_is_one(draw, run_of):
    run = run_of("global")
    write_metrics(run, "50,1,30.5,4000,train,5.5,240.0,,0.001,1.5,,", VALID)
    thin = "valid · thin: training data"
    assert thin in draw(run)
    assert thin not in draw(run, "--kind", "learning", "--y", "bleu")


def test_runs_of_one_name_are_told_apart_by_their_paths(draw, make_tiny_run, tmp_path):
    runs = [make_tiny_run(f"{name}/run", FlexibleConfig()) for name in "ab"]
    for run in runs:
        write_metrics(run, VALID)
    text = draw(*runs)
    assert all(str(run) in text for run in runs)
