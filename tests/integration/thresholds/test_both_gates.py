"""Flexible attention with its remainder and the gate of reuse, through the commands."""

from __future__ import annotations

import json

import pytest
from capitals import MODEL, ODD_LINES, PLACE, SMALL_TAU, call

pytestmark = pytest.mark.integration

OWN = ["--attention", "flexible", "--remainder", "--attend-every", "gate"]


@pytest.fixture(scope="session")
def both(corpus):
    """A run with both gates, trained, resumed and finetuned under a threshold."""
    base, run = corpus / "both-base", corpus / "both"
    for updates in (6, 12):
        options = [*OWN, "--updates", updates, "--batch-sentences", 16]
        call("train", corpus / "prepared", "--run", base, *MODEL, *options, *PLACE)
    options = ["--updates", 6, "--beta", 1, "--train-tau", 0.3, "--tau", 0.3]
    call("finetune", base, "--run", run, *options, *PLACE)
    return run


@pytest.mark.slow
def test_each_threshold_computes_less(both, evaluate):
    def cps(*options):
        found = evaluate(both, *options)
        return found["cps"], found

    everything, _ = cps()
    never, found = cps("--reuse-below", 1)
    assert found["reuse_below"] == 1
    limited, _ = cps("--tau", SMALL_TAU)
    assert never < limited < everything
    assert cps("--reuse-below", 0)[0] == everything
    assert cps("--reuse-below", 1, "--tau", SMALL_TAU)[0] <= min(limited, never)


def test_the_other_commands_take_both(both, flexible, translate, command_line, tmp_path):
    options = ["--tau", SMALL_TAU, "--reuse-below", 0.9]
    plain, _ = translate(both, ODD_LINES, *options, "--beam", 1)
    record = tmp_path / "attention.jsonl"
    more = ["--attention-output", record, "--replace-unk", "--stats", "--beam", 1]
    translate(both, ODD_LINES, *options, *more)
    for line in record.read_text().splitlines():
        seen = json.loads(line)
        if seen["weights"] is not None:
            assert all(sum(row) == pytest.approx(1, abs=1e-4) for row in seen["weights"])
    assert len(plain) == len(ODD_LINES)
    translate(both, ODD_LINES, *options, "--int8")
    feeding = ["--source", tmp_path / "s", "--target", tmp_path / "s"]
    (tmp_path / "s").write_text("a b c\n")
    assert command_line("score", both, *feeding, *options, *PLACE).code == 0
    sweep = ["--tau", "0.1,inf", "--reuse-below", 0.9, "--output", tmp_path / "sweep", "--json"]
    outcome = command_line("sweep", both, *sweep, "--beam", 1, *PLACE)
    assert outcome.code == 0, outcome.err
    few, all_positions = json.loads(outcome.out)["points"]
    assert few["cps"] <= all_positions["cps"]
    ensemble = command_line("eval", both, flexible, "--ensemble", *options, "--beam", 1, *PLACE)
    assert ensemble.code == 0, ensemble.err
    page = command_line("report", both, *options, "--out", tmp_path / "page.html", *PLACE)
    assert page.code == 0, page.err
    sentence = ["--sentence", "a b c", "--out", tmp_path / "one.png"]
    outcome = command_line("plot", both, *sentence, *options, *PLACE)
    assert outcome.code == 0, outcome.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--reuse-below", 0.5], "--reuse-below 0.5 needs a run of --attend-every gate"),
        (["--reuse-below", 1.5], "--reuse-below must be at most 1, not 1.5"),
        (["--reuse-below", -1], "--reuse-below must be at least 0, not -1"),
    ],
)
def test_a_threshold_without_effect_is_refused(flexible, command_line, options, message):
    outcome = command_line("eval", flexible, *options, *PLACE)
    assert outcome.code == 2
    assert message in outcome.err
