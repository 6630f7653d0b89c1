"""translate and eval with several runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import nmtflex
from nmtflex.config import FlexibleConfig, GlobalConfig
from nmtflex.text.vocabulary import Vocabulary

ONE_THREAD = ("--threads", 1, "--device", "cpu")
LINES = ["a b c", "", "h g f e d c b a"]


@pytest.fixture
def two(make_tiny_run) -> list[Path]:
    return [make_tiny_run("one", GlobalConfig()), make_tiny_run("two", FlexibleConfig(), seed=2)]


@pytest.fixture
def source(tmp_path) -> Path:
    path = tmp_path / "source.aa"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


def test_translate_as_the_api(command_line, two, source, tmp_path) -> None:
    traces = tmp_path / "traces.jsonl"
    outcome = command_line(
        "translate", *two, *ONE_THREAD, "-i", source, "--stats", "--tau", "inf", "--beam", 3,
        "--attention-output", traces,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    expected = nmtflex.load(two, threads=1, beam=3).translate(LINES)
    assert outcome.out.splitlines() == expected
    assert "CPS 11.00" in outcome.err  # 3 and 8 words, each looked at by both
    records = [json.loads(line) for line in traces.read_text().splitlines()]
    assert len(records[0]["weights"][0]) == 3
    assert records[0]["gate"] is None  # the first run has none


@pytest.mark.slow
def test_workers_change_nothing(command_line, two, source) -> None:
    options = ("-i", source, "--n-best", 2, "--format", "json", *ONE_THREAD)
    assert (
        command_line("translate", *two, *options, "--workers", 2).out
        == command_line("translate", *two, *options).out
    )


def test_eval_scores_the_ensemble(command_line, two, tmp_path) -> None:
    output = tmp_path / "output.bb"
    outcome = command_line(
        "eval", *two, "--ensemble", "--json", "--output", output, "--tau", 0, *ONE_THREAD
    )
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out)
    assert found["run"] == f"{two[0]} + {two[1]}"
    assert "update" not in found
    assert found["tau"] == 0
    assert found["cps"] == pytest.approx((3 + 4) / 2 + 1)
    lines = nmtflex.load(two, threads=1, tau=0).translate(["a b c", "", "c a b b"])
    assert output.read_text().splitlines() == lines


@pytest.mark.parametrize(
    ("chosen", "options", "message"),
    [
        (1, ["--ensemble"], "--ensemble ... {one}"),
        (0, ["--ensemble", "--hypothesis", "h", "--reference", "r"], "--ensemble "),
    ],
)
def test_eval_says_what_several_runs_are_for(command_line, two, chosen, options, message) -> None:
    outcome = command_line("eval", *two[:chosen], *options)
    assert (outcome.code, outcome.out) == (2, "")
    values = message.format(one=two[0]).split(" ... ")
    assert [value for value in values if value not in outcome.err] == []


def test_eval_needs_the_same_test_data(command_line, two) -> None:
    (two[1] / "raw" / "test.source.txt").write_text("a b c\n\nc a b a\n")
    outcome = command_line("eval", *two, "--ensemble", *ONE_THREAD)
    assert outcome.code == 2
    assert f"{two[1]} has other test data than {two[0]}, from source line 3 on" in outcome.err


def test_runs_of_other_vocabularies_are_named(command_line, two, source) -> None:
    Vocabulary(list("ABCDEFGI"), [1] * 8).save(two[1] / "pipeline" / "target.vocabulary")
    outcome = command_line("translate", *two, *ONE_THREAD, "-i", source)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert f"{two[1]} has another target vocabulary than {two[0]}" in outcome.err
