"""nmtflex finetune: fewer computations by eq. 9, other data, frozen weights, resuming."""

from __future__ import annotations

import csv
import json
import math
import os
import random
import shutil
import signal
from pathlib import Path

import pytest
from safetensors.torch import load_file

from nmtflex.cli.app import main
from nmtflex.config import DeviceConfig
from nmtflex.model.run import load_run

pytestmark = pytest.mark.integration

MODEL = ["--embedding-size", 8, "--encoder-size", 8, "--decoder-size", 8]
PLACE = ["--threads", 1, "--device", "cpu"]
LOOP = ["--valid-beam", 2, "--log-every", 1, *PLACE]
CPU = DeviceConfig(device="cpu", threads=1)
BEST = Path("checkpoints") / "best.safetensors"


def write_corpus(prefix: Path, pairs: int, seed: int, letters: str, longest: int = 9) -> Path:
    """Letters to capital letters, backwards."""
    draw = random.Random(seed)
    lines = [draw.choices(letters, k=draw.randint(1, longest)) for _ in range(pairs)]
    texts = {"lo": lines, "up": [[letter.upper() for letter in line[::-1]] for line in lines]}
    for language, words in texts.items():
        text = "".join(" ".join(line) + "\n" for line in words)
        prefix.with_name(f"{prefix.name}.{language}").write_text(text)
    return prefix


def call(*arguments: object) -> None:
    assert main([str(argument) for argument in arguments]) == 0


def preprocess(folder: Path, *options: object, valid: bool = True) -> Path:
    splits = ["--train", folder / "train", *(["--valid", folder / "valid"] if valid else [])]
    languages = ["--source-lang", "lo", "--target-lang", "up"]
    out = folder / ("prepared" if valid else "without-valid")
    call("preprocess", *splits, *languages, *options, "--out", out)
    return out


class Bases:
    """Trained runs, and prepared corpora: their own and two others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = self._corpus("base", 160, 1, "abcdef")
        self.flexible = self._train("flexible", "--batch-sentences", 16)
        self.plain = self._train("global", "--batch-tokens", 120)
        self.memory = self._train("memory", "--K", 3, "--batch-sentences", 16)
        self.other = self._corpus("other", 90, 20, "fedc", 14, "--like", self.flexible)
        self.strange = self._corpus("strange", 60, 30, "uvwxyz")
        self.unjudged = preprocess(folder / "other", "--like", self.data, valid=False)

    def _corpus(self, name: str, pairs: int, seed: int, letters: str, longest=9, *options) -> Path:
        (self.folder / name).mkdir()
        for split, count in {"train": pairs, "valid": 12}.items():
            write_corpus(self.folder / name / split, count, seed + count, letters, longest)
        return preprocess(self.folder / name, *options)

    def _train(self, kind: str, *options: object) -> Path:
        run = self.folder / kind
        chosen = ["--attention", kind, *options, "--epochs", 2, "--halve-from", 2, "--lr", 0.004]
        call("train", self.data, "--run", run, *MODEL, *LOOP, *chosen)
        return run


@pytest.fixture(scope="module")
def bases(tmp_path_factory) -> Bases:
    return Bases(tmp_path_factory.mktemp("finetune"))


@pytest.fixture
def finetune(command_line):
    def run(base, new, *options):
        return command_line("finetune", base, "--run", new, *LOOP, *options)

    return run


def rows(run: Path, split: str) -> list[dict[str, str]]:
    with (run / "metrics.csv").open(newline="") as file:
        found = [row for row in csv.DictReader(file) if row["split"] == split]
    return [{k: v for k, v in row.items() if k != "seconds"} for row in found]


def numbers(run: Path, column: str) -> list[float]:
    return [float(row[column]) for row in rows(run, "valid")]


def tensors(path: Path) -> dict[str, list]:
    return {name: tensor.tolist() for name, tensor in load_file(path).items()}


def last_checkpoint(run: Path) -> Path:
    return max((run / "checkpoints").glob("update-*"))


def weights(run: Path) -> dict[str, list]:
    return tensors(last_checkpoint(run) / "weights.safetensors")


def options_of(run: Path) -> dict[str, object]:
    return json.loads((run / "config.json").read_text())["train"]


def data_of(run: Path) -> dict[str, object]:
    return json.loads((run / "config.json").read_text())["data"]


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


def mean_length(prepared: Path) -> float:
    lines = (prepared.parent / "valid.lo").read_text().splitlines()
    return sum(len(line.split()) for line in lines) / len(lines)


def test_what_is_not_given_follows_from_the_base_run(finetune, bases, tmp_path):
    assert finetune(bases.flexible, tmp_path / "flexible").code == 0
    found = options_of(tmp_path / "flexible")
    assert (found["beta"], found["tau"], found["freeze"]) == (0.1, "auto", [])
    assert found["lr"] == 0.002  # halved in the second epoch of the base run
    assert (found["batch_sentences"], found["batch_tokens"]) == (16, None)
    assert found["data"] == str(bases.data)
    assert {float(row["learning_rate"]) for row in rows(tmp_path / "flexible", "train")} == {0.002}

    assert finetune(bases.plain, tmp_path / "plain", "--lr", 0.01).code == 0
    found = options_of(tmp_path / "plain")
    assert (found["beta"], found["tau"], found["lr"]) == (0.0, None, 0.01)
    assert (found["batch_sentences"], found["batch_tokens"]) == (None, 120)
    for row in rows(tmp_path / "plain", "valid"):
        assert row["gate_mean"] == ""
        assert float(row["cps"]) == pytest.approx(mean_length(bases.data), rel=1e-9)
    assert {row["gate_mean"] for row in rows(tmp_path / "plain", "train")} == {""}


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


def test_the_optimiser_is_fresh(finetune, bases, tmp_path):
    assert finetune(bases.flexible, tmp_path / "new", "--updates", 3).code == 0
    trainer = tensors(last_checkpoint(tmp_path / "new") / "trainer.safetensors")
    assert {value for name, value in trainer.items() if name.endswith(":step")} == {3.0}
    base = load_file(last_checkpoint(bases.flexible) / "trainer.safetensors")
    assert {value.item() for name, value in base.items() if name.endswith(":step")} == {20.0}


@pytest.mark.parametrize("more", [[], ["--train-tau", 0.5]], ids=["", "train-tau"])
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

    def stop(self, model, check):
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


def test_other_options_than_it_began_with_are_refused(finetune, bases, tmp_path):
    finetune(bases.flexible, tmp_path / "new", "--updates", 2)
    outcome = finetune(bases.flexible, tmp_path / "new", "--updates", 4, "--beta", 3, "--tau", 2)
    assert outcome.code == 2
    assert "--beta was 0.1, not 3.0" in outcome.err
    assert "--tau was auto, not 2" in outcome.err


def test_another_base_run_than_it_began_with_is_refused(finetune, bases, tmp_path):
    """It would go on from the weights of the first base, and say nothing."""
    options = ["--lr", 0.001, "--updates"]
    assert finetune(bases.flexible, tmp_path / "second", *options, 3).code == 0
    assert finetune(bases.flexible, tmp_path / "new", *options, 2).code == 0
    outcome = finetune(tmp_path / "second", tmp_path / "new", *options, 4)
    assert outcome.code == 2
    assert str(tmp_path / "second") in outcome.err
    shutil.copytree(bases.flexible, tmp_path / "moved")  # but a base may move
    outcome = finetune(tmp_path / "moved", tmp_path / "new", *options, 4)
    assert outcome.code == 0, outcome.err


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


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("encodr.*", "--freeze 'encodr.*' matches no weights; there are encoder.embedding.weight"),
        ("*", "--freeze * leaves nothing to train"),
    ],
)
def test_a_pattern_in_vain_is_an_error_that_leaves_no_run(
    finetune, bases, tmp_path, pattern, message
):
    new = tmp_path / "new"
    outcome = finetune(bases.flexible, new, "--updates", 2, "--freeze", pattern)
    assert outcome.code == 2
    assert f"nmtflex: error: {message}" in outcome.err
    # The corrected command must not be refused for what the wrong one left behind.
    outcome = finetune(bases.flexible, new, "--updates", 2, "--freeze", "encoder.*")
    assert outcome.code == 0, outcome.err


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
    outcome = finetune(bases.flexible, new, "--updates", 9)  # data that it did not begin with
    assert outcome.code == 2
    assert "the prepared data is not the data it was trained on" in outcome.err


def test_another_vocabulary_is_refused(finetune, bases, tmp_path):
    outcome = finetune(bases.flexible, tmp_path / "new", "--data", bases.strange)
    assert outcome.code == 1
    message = f"{bases.strange} has another source vocabulary than {bases.flexible}"
    assert f"nmtflex: error: {message}; preprocess with --like {bases.flexible}" in outcome.err
    assert not (tmp_path / "new").exists()


def test_data_without_validation_needs_no_threshold(finetune, bases, tmp_path):
    """Nothing is validated, so the default of --tau must not stand in the way."""
    outcome = finetune(bases.flexible, tmp_path / "new", "--data", bases.unjudged, "--updates", 2)
    assert outcome.code == 0, outcome.err
    assert rows(tmp_path / "new", "valid") == []
    assert tensors(tmp_path / "new" / BEST) == weights(tmp_path / "new")


def test_auto_without_validation_data_leaves_no_run(finetune, bases, tmp_path):
    options = ["--data", bases.unjudged, "--updates", 2]
    outcome = finetune(bases.flexible, tmp_path / "new", *options, "--tau", "auto")
    assert outcome.code == 2
    assert "--tau auto is made of the length of the validation sources" in outcome.err
    outcome = finetune(bases.flexible, tmp_path / "new", *options, "--tau", "1.2")
    assert outcome.code == 0, outcome.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--beta", 0.5], "--beta 0.5 weighs the gate of flexible attention, and {run} has global"),
        (["--train-tau", 0.5], "--train-tau 0.5 needs flexible attention"),
        (["--tau", 1.2], "--tau 1.2 needs flexible attention, and {run} has global"),
        (["--tau", "inf"], "--tau inf needs flexible attention, and {run} has global"),
        (["--tau", "some"], "--tau must be a number of at least 0, inf or auto, not 'some'"),
        (["--beta", -1], "--beta must be at least 0, not -1.0"),
    ],
)
def test_what_needs_a_gate_is_refused_without_one(finetune, bases, tmp_path, options, message):
    outcome = finetune(bases.plain, tmp_path / "new", *options)
    assert outcome.code == 2
    assert f"nmtflex: error: {message.format(run=bases.plain)}" in outcome.err
    assert not (tmp_path / "new").exists()


def test_beta_0_is_no_gate_term(finetune, bases, tmp_path):
    assert finetune(bases.plain, tmp_path / "new", "--updates", 1, "--beta", 0).code == 0


def test_a_run_is_not_finetuned_into_itself(finetune, bases):
    before = (bases.flexible / "config.json").read_bytes()
    for spelling in (bases.flexible, bases.flexible.parent / "memory" / ".." / "flexible"):
        outcome = finetune(bases.flexible, spelling)
        assert outcome.code == 2
        assert f"--run {spelling} is the base run itself; give another folder" in outcome.err
    assert (bases.flexible / "config.json").read_bytes() == before


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


def test_training_data_that_is_gone_is_named(finetune, bases, tmp_path):
    base = tmp_path / "base"
    shutil.copytree(bases.plain, base)
    config = json.loads((base / "config.json").read_text())
    config["train"]["data"] = str(tmp_path / "gone")
    (base / "config.json").write_text(json.dumps(config))
    outcome = finetune(base, tmp_path / "new")
    assert outcome.code == 2
    message = f"{base} was trained on {tmp_path / 'gone'}, which is not there; give --data"
    assert f"nmtflex: error: {message}" in outcome.err
    assert finetune(base, tmp_path / "new", "--data", bases.data, "--updates", 1).code == 0


def test_a_base_without_checkpoints_needs_a_rate(finetune, bases, tmp_path):
    base = tmp_path / "base"
    shutil.copytree(bases.plain, base)
    for checkpoint in (base / "checkpoints").glob("update-*"):
        shutil.rmtree(checkpoint)
    outcome = finetune(base, tmp_path / "new")
    assert outcome.code == 1
    assert f"{base} has no checkpoint to take the learning rate from; give --lr" in outcome.err
    assert finetune(base, tmp_path / "new", "--lr", 0.001, "--updates", 1).code == 0


def test_memory_keeps_the_longest_source_it_was_made_for(finetune, bases, tmp_path):
    """Position encodings are of that length; those of longer new data would be another model's."""
    new = tmp_path / "new"
    for updates in (2, 4):  # and a resumed run agrees with itself
        outcome = finetune(bases.memory, new, "--data", bases.other, "--updates", updates)
        assert outcome.code == 0, outcome.err
    longest = data_of(bases.memory)["longest_source"]
    assert longest == 9 < longest_source(bases.other)
    assert data_of(new)["longest_source"] == longest
    assert load_run(new, CPU).model.decoder.attention.source_length == longest
    assert options_of(new)["beta"] == 0.0


def longest_source(prepared: Path) -> int:
    lines = (prepared.parent / "train.lo").read_text().splitlines()
    return max(len(line.split()) for line in lines)
