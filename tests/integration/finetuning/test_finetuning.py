"""nmtflex finetune: the gate term, what follows from the base run, resuming."""

from __future__ import annotations

import json
import math
import os
import signal

import pytest
from base_runs import (
    BEST,
    PLACE,
    data_of,
    mean_length,
    numbers,
    options_of,
    rows,
    tensors,
    weights,
)

pytestmark = pytest.mark.integration


@pytest.mark.slow
def test_before_and_after_are_logged(finetune, command_line, bases, tmp_path):
    new = tmp_path / "new"
    outcome = finetune(bases.flexible, new)
    assert outcome.code == 0, outcome.err
    assert outcome.out == ""
    before, after = rows(new, "valid")
    assert (before["update"], after["update"]) == ("0", "10")  # an epoch of 160 pairs
    for row in (before, after):
        assert 0 <= float(row["bleu"]) <= 100
        assert 0 < float(row["gate_mean"]) < 1
        assert float(row["cps"]) >= 1
        assert f"gate {float(row['gate_mean']):.3f}  CPS {float(row['cps']):.2f}" in outcome.err
    for run, row in ((bases.flexible, before), (new, after)):  # as eval has them
        found = command_line(
            "eval", run, "--split", "valid", "--tau", "auto", "--beam", 2, "--json", *PLACE
        )
        scores = json.loads(found.out)
        assert scores["bleu"] == pytest.approx(float(row["bleu"]), abs=1e-9)
        assert scores["cps"] == pytest.approx(float(row["cps"]), abs=1e-9)
    gates = [float(row["gate_mean"]) for row in rows(new, "train")]
    assert len(gates) == 10
    assert all(0 < gate < 1 for gate in gates)


def test_training_logs_the_gate_and_computes_everything(bases):
    for row in rows(bases.flexible, "valid"):
        assert 0 < float(row["gate_mean"]) < 1
        assert float(row["cps"]) == pytest.approx(mean_length(bases.data), rel=1e-9)
    assert all(0 < float(row["gate_mean"]) < 1 for row in rows(bases.flexible, "train"))


def test_the_gate_opens_with_beta(finetune, bases, tmp_path):
    options = ["--updates", 40, "--lr", 0.004]
    for beta in (0, 50):
        assert finetune(bases.flexible, tmp_path / str(beta), "--beta", beta, *options).code == 0
    plain, pressed = (numbers(tmp_path / beta, "gate_mean") for beta in ("0", "50"))
    assert plain[0] == pressed[0]
    assert pressed[-1] > plain[-1] + 0.05
    assert numbers(tmp_path / "50", "cps")[-1] < numbers(tmp_path / "0", "cps")[-1]
    last = rows(tmp_path / "50", "train")[-1]  # the loss is eq. 9, the perplexity stays plain
    cost = math.log(float(last["perplexity"]))
    assert float(last["loss"]) < cost - 1


def test_training_may_leave_out_what_decoding_does(finetune, bases, tmp_path):
    """Under inf it is the paper's finetuning; under a threshold the same updates lead elsewhere."""
    found = {}
    for tau in ("none", "inf", "0.1"):
        options = [] if tau == "none" else ["--train-tau", tau]
        outcome = finetune(bases.flexible, tmp_path / tau, "--updates", 3, *options)
        assert outcome.code == 0, outcome.err
        found[tau] = weights(tmp_path / tau)
    assert found["inf"] == found["none"] != found["0.1"]
    assert options_of(tmp_path / "0.1")["train_tau"] == "0.1"
    # Validations before the first update see the same weights, whatever the training's threshold.
    first = [rows(tmp_path / tau, "valid")[0] for tau in ("inf", "0.1")]
    assert first[0]["bleu"] == first[1]["bleu"]
    assert first[0]["cps"] == first[1]["cps"]


def test_a_remainder_costs_one_score_where_something_is_left_out(finetune, bases, tmp_path):
    """Before the first update both have the same weights, and under tau 0 all is left out."""
    first = {}
    for options in ([], ["--remainder"]):
        run = tmp_path / "-".join(["tuned", *options])
        outcome = finetune(bases.flexible, run, "--updates", 1, "--tau", 0, *options)
        assert outcome.code == 0, outcome.err
        first[len(options)] = rows(run, "valid")[0]
    assert float(first[0]["cps"]) == 1  # the position nearest to the focus
    assert 1 < float(first[1]["cps"]) <= 2


@pytest.mark.parametrize(
    "more",
    [
        pytest.param([], marks=pytest.mark.slow),
        pytest.param(["--train-tau", 0.5], marks=pytest.mark.slow),
        ["--remainder", "--train-tau", 0.5],
    ],
    ids=["", "train-tau", "remainder"],
)
def test_resumed_equals_unbroken_bit_for_bit(finetune, bases, tmp_path, more):
    options = ["--beta", 2, "--accumulate", 2, "--halve-from", 2, *more]
    assert finetune(bases.flexible, tmp_path / "whole", "--updates", 12, *options).code == 0
    for updates in (2, 7, 12):  # an epoch has 5
        outcome = finetune(bases.flexible, tmp_path / "parts", "--updates", updates, *options)
        assert outcome.code == 0, outcome.err
    assert "resuming" in outcome.err
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
    assert rows(tmp_path / "parts", "train") == rows(tmp_path / "whole", "train")
    whole, parts = rows(tmp_path / "whole", "valid"), rows(tmp_path / "parts", "valid")
    assert [row["update"] for row in parts] == ["0", "2", "5", "7", "10", "12"]
    assert [row for row in parts if row["update"] not in ("2", "7")] == whole


def test_a_signal_in_the_first_validation_loses_nothing(finetune, bases, tmp_path, monkeypatch):
    from nmtflex.training.validation import Validator

    def stop(self, model, check, show):
        os.kill(os.getpid(), signal.SIGTERM)
        check()

    with monkeypatch.context() as patch:
        patch.setattr(Validator, "__call__", stop)
        outcome = finetune(bases.flexible, tmp_path / "cut", "--updates", 4)
    assert outcome.code == 128 + signal.SIGTERM
    assert "stopped by SIGTERM at update 0" in outcome.err
    for folder in ("cut", "whole"):
        assert finetune(bases.flexible, tmp_path / folder, "--updates", 4).code == 0
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")
    assert tensors(tmp_path / "cut" / BEST) == tensors(tmp_path / "whole" / BEST)
    for split in ("train", "valid"):
        assert rows(tmp_path / "cut", split) == rows(tmp_path / "whole", split)
    assert "is finished" in finetune(bases.flexible, tmp_path / "cut", "--updates", 4).err


def test_frozen_weights_stay_as_they_were(finetune, bases, tmp_path):
    options = ["--freeze", "encoder.*", "--freeze", "output.projection.bias", "--beta", 1]
    assert finetune(bases.flexible, tmp_path / "whole", "--updates", 7, *options).code == 0
    for updates in (3, 7):
        outcome = finetune(bases.flexible, tmp_path / "parts", "--updates", updates, *options)
        assert outcome.code == 0, outcome.err
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
    before, after = tensors(bases.flexible / BEST), weights(tmp_path / "whole")
    kept = {name for name, value in before.items() if after[name] == value}
    assert kept == {
        name for name in before if name.startswith("encoder.") or name == "output.projection.bias"
    }
    assert options_of(tmp_path / "whole")["freeze"] == ["encoder.*", "output.projection.bias"]


def test_other_data_made_like_the_run(finetune, bases, tmp_path):
    new = tmp_path / "new"
    outcome = finetune(bases.flexible, new, "--data", bases.other, "--updates", 8)
    assert outcome.code == 0, outcome.err
    assert options_of(new)["data"] == str(bases.other)
    assert data_of(new)["mean_valid_source"] == pytest.approx(mean_length(bases.other))
    assert data_of(new)["fingerprint"] != data_of(bases.flexible)["fingerprint"]
    assert (new / "raw" / "valid.source.txt").read_text() == (
        bases.other.parent / "valid.lo"
    ).read_text()
    assert finetune(bases.flexible, new, "--updates", 9).code == 0  # data as it began with
    assert options_of(new)["data"] == str(bases.other)
    base = options_of(bases.flexible)["data"]
    outcome = finetune(bases.flexible, new, "--data", base, "--updates", 10)
    assert outcome.code == 2
    assert "the prepared data is not the data it was trained on" in outcome.err


def test_a_finetuned_run_is_a_run(finetune, command_line, bases, tmp_path):
    assert finetune(bases.flexible, tmp_path / "one", "--updates", 2).code == 0
    assert finetune(tmp_path / "one", tmp_path / "two", "--updates", 2, "--lr", 0.001).code == 0
    first, second = (rows(tmp_path / name, "valid") for name in ("one", "two"))
    assert second[0]["bleu"] == first[-1]["bleu"]
    assert options_of(tmp_path / "two")["data"] == str(bases.data)
    outcome = command_line(
        "translate", tmp_path / "two", "--tau", "auto", *PLACE, "-i", bases.data.parent / "valid.lo"
    )
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("\n") == 12
