"""A run without a test split: the validation split is taken, and that is said."""

from __future__ import annotations

import json

import pytest

from nmtflex.config import FlexibleConfig

ONE_THREAD = ("--threads", 1)


@pytest.fixture
def valid_alone(make_tiny_run):
    """A run with flexible attention that carries a validation split alone."""
    run = make_tiny_run("flexible", FlexibleConfig())
    for side in ("source", "target"):
        (run / "raw" / f"test.{side}.txt").rename(run / "raw" / f"valid.{side}.txt")
    return run


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "command",
    [
        ["eval", "RUN"],
        ["sweep", "RUN", "--tau", "1,inf", "--output", "OUT/sweep"],
        ["bench", "RUN", "--repeats", 1, "--beam", 1],
        ["plot", "RUN", "--index", 0, "--output", "OUT/a.svg"],
        ["plot", "RUN", "--kind", "length", "--output", "OUT/b.svg"],
        ["report", "RUN", "--out", "OUT/page.html"],
    ],
    ids=lambda words: " ".join(map(str, words[:4])),
)
def test_the_validation_split_is_taken_and_told(command_line, valid_alone, tmp_path, command):
    pytest.importorskip("matplotlib")
    pytest.importorskip("plotly")
    places = {"RUN": valid_alone, "OUT": tmp_path}
    words = [
        str(places[word.partition("/")[0]]) + word[3:] if str(word)[:3] in places else word
        for word in command
    ]
    outcome = command_line(*words, *ONE_THREAD)
    assert outcome.code == 0, outcome.err
    [told] = [line for line in outcome.err.splitlines() if "no test split" in line]
    assert str(valid_alone) in told
    assert "--split valid" in told


def test_a_split_that_is_asked_for_is_not_replaced(command_line, valid_alone):
    outcome = command_line("eval", valid_alone, "--split", "test", *ONE_THREAD)
    assert outcome.code == 1
    assert f"{valid_alone} has no split 'test'; there is valid" in outcome.err


def test_the_scores_say_of_which_split_they_are(command_line, valid_alone):
    found = json.loads(command_line("eval", valid_alone, "--json", *ONE_THREAD).out)
    assert (found["split"], found["sentences"]) == ("valid", 3)


def test_a_run_with_neither_says_so(command_line, tiny_run):
    for side in ("source", "target"):
        (tiny_run / "raw" / f"test.{side}.txt").unlink()
    outcome = command_line("eval", tiny_run, *ONE_THREAD)
    assert outcome.code == 1
    assert f"{tiny_run} has no split 'test'; it has no test data" in outcome.err
