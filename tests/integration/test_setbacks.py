"""Losses and gradients that are no numbers, memory that does not suffice, --batch-tokens auto."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from nmtflex.cli.app import main
from nmtflex.corpus.batches import Batches
from nmtflex.training import gradients
from nmtflex.training.gradients import Gradients

pytestmark = pytest.mark.integration

MODEL = ["--embedding-size", 6, "--encoder-size", 6, "--decoder-size", 6]
PLACE = ["--threads", 1, "--device", "cpu"]
BAD = 17  # a training pair


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    draw = random.Random(4)
    lines = [" ".join(draw.choices("abcd", k=draw.randint(1, 6))) for _ in range(100)]
    (folder / "train.lo").write_text("".join(f"{line}\n" for line in lines))
    (folder / "train.up").write_text("".join(f"{line.upper()}\n" for line in lines))
    languages = ["--source-lang", "lo", "--target-lang", "up"]
    command = ["preprocess", *languages, "--train", folder / "train", "--out", folder / "prepared"]
    assert main([str(argument) for argument in command]) == 0
    options = [*MODEL, *PLACE, "--updates", 1]  # compiles what is not yet
    command = ["train", folder / "prepared", "--run", folder / "warm", *options]
    assert main([str(argument) for argument in command]) == 0
    return folder


@pytest.fixture
def train(command_line, made):
    def run(folder: Path, *options: object, batch=("--batch-sentences", 10)):
        where = (made / "prepared", "--run", folder)
        return command_line("train", *where, *MODEL, *PLACE, *batch, "--log-every", 1, *options)

    return run


def tensors(run: Path, update: int, name: str = "weights") -> dict[str, list]:
    path = run / "checkpoints" / f"update-{update:08d}" / f"{name}.safetensors"
    return {key: tensor.tolist() for key, tensor in load_file(path).items() if key != "rng.cpu"}


def progress(run: Path, update: int) -> dict[str, float]:
    path = run / "checkpoints" / f"update-{update:08d}" / "progress.json"
    return json.loads(path.read_text())


@pytest.fixture
def poison(monkeypatch):
    """Let the gradient of a batch with the bad pair be no number; return the updates of such."""
    true_of = Gradients.of
    calls: list[bool] = []

    def of(self, chosen, *following):
        sums = true_of(self, chosen, *following)
        calls.append(any(BAD in pairs for pairs in chosen))
        if calls[-1]:
            next(self.model.parameters()).grad.view(-1)[0] = math.nan
        return sums

    monkeypatch.setattr(Gradients, "of", of)
    return calls


def test_an_update_without_a_finite_gradient_is_skipped_and_named(train, made, tmp_path, poison):
    every = ("--save-every", 1e-9, "--keep", 99)
    outcome = train(tmp_path / "whole", "--updates", 10, *every)
    assert outcome.code == 0
    bad = 1 + poison.index(True)
    assert poison.count(True) == 1
    if bad > 1:
        for name in ("weights", "trainer"):
            before, after = (tensors(tmp_path / "whole", n, name) for n in (bad - 1, bad))
            assert before == after
    told = [line for line in outcome.err.splitlines() if "skipped" in line]
    assert f"update {bad}: the loss is 2." in told[0]
    assert "and the gradient's norm nan: skipped, weights stay as they were (1 so far)" in told[0]
    assert "its batch is lines " in told[0]
    assert f"of {made / 'train.lo'} and 2 more (source " in told[0]
    cures = [line for line in outcome.err.splitlines() if "--warmup (now 0)" in line]
    assert len(cures) == 1
    assert "--lr (now 0.001)" in cures[0]
    assert "--clip (now 3)" in cures[0]
    assert told[-1].endswith("; 1 update skipped (loss or gradient not finite, or out of memory)")
    assert (progress(tmp_path / "whole", 10)["skipped"], len(told)) == (1, 2)
    rows = (tmp_path / "whole" / "metrics.csv").read_text().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == [str(n) for n in range(1, 11) if n != bad]
    assert "nan" not in "".join(rows)


def test_a_training_with_skipped_updates_resumes_bit_for_bit(train, tmp_path, poison):
    train(tmp_path / "whole", "--updates", 24, "--save-every", 1e-9, "--keep", 99)
    bad = [number for number, skipped in enumerate(poison, 1) if skipped]
    assert len(bad) >= 2
    for updates in (bad[0] - 1, bad[0], bad[1], 24):
        if updates:
            assert train(tmp_path / "parts", "--updates", updates, "--keep", 99).code == 0
    for name in ("weights", "trainer"):
        assert tensors(tmp_path / "parts", 24, name) == tensors(tmp_path / "whole", 24, name)
    assert progress(tmp_path / "parts", 24)["skipped"] == len(bad)


def test_too_many_in_a_row_stop_the_run_with_its_state_saved(train, tmp_path, monkeypatch):
    true_of = Gradients.of

    def of(self, chosen, *following):
        sums = true_of(self, chosen, *following)
        sums.objective = math.inf
        return sums

    run = tmp_path / "run"
    assert train(run, "--updates", 2, "--bad-updates", 3).code == 0
    with monkeypatch.context() as patch:
        patch.setattr(Gradients, "of", of)
        for update in (5, 8):
            outcome = train(run, "--updates", 20, "--bad-updates", 3)
            assert outcome.code == 1
            assert f"update {update}: the loss is inf and the gradient's norm" in outcome.err
            assert outcome.err.splitlines()[-1] == (
                f"nmtflex: error: update {update} was the last of 3 in a row that were skipped "
                f"(--bad-updates 3); the state is saved in {run}, with the weights before them: "
                f"look at the pairs named above, or train with a lower --lr (now 0.001), a longer "
                f"--warmup (now 0) or a lower --clip (now 3), with --dtype float32 or fewer "
                f"--batch-tokens in another --run; the same command tries 3 more"
            )
            assert progress(run, update)["skipped"] == update - 2
    assert tensors(run, 8) == tensors(run, 5)
    outcome = train(run, "--updates", 9, "--bad-updates", 3)
    assert outcome.code == 0
    assert tensors(run, 9) != tensors(run, 8)


def test_a_good_update_between_bad_ones_goes_on(train, tmp_path, poison):
    assert train(tmp_path / "run", "--updates", 24, "--bad-updates", 2).code == 0
    assert poison.count(True) >= 2


def too_large(monkeypatch, most: int) -> None:
    true_loss = gradients.loss_of

    def loss_of(model, batch, *options):
        if len(batch.lengths) > most:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return true_loss(model, batch, *options)

    monkeypatch.setattr(gradients, "loss_of", loss_of)


def test_batches_that_memory_does_not_hold_are_halved(train, tmp_path, monkeypatch):
    exact = ("--updates", 6, "--dtype", "float64", "--dropout", 0, "--accumulate", 2)
    assert train(tmp_path / "whole", *exact).code == 0
    too_large(monkeypatch, 5)
    outcome = train(tmp_path / "halves", *exact)
    assert outcome.code == 0
    told = [line for line in outcome.err.splitlines() if "not enough memory" in line]
    assert len(told) == 6
    assert "update 2: not enough memory for a batch of lines" in told[1]
    assert "halved 2 times (4 so far); a lower --batch-tokens avoids it" in told[1]
    # 100 pairs are ten batches, then the next epoch's.
    assert outcome.err.splitlines()[-1].endswith("; 12 batches halved for lack of memory")
    whole = load_file(tmp_path / "whole" / "checkpoints" / "best.safetensors")
    for name, tensor in load_file(tmp_path / "halves" / "checkpoints" / "best.safetensors").items():
        torch.testing.assert_close(tensor, whole[name], rtol=1e-7, atol=1e-9)
    assert train(tmp_path / "halves", *exact).code == 0


def test_batches_far_beyond_memory_are_cut_before_they_are_tried(train, tmp_path, monkeypatch):
    exact = ("--updates", 6, "--dtype", "float64", "--dropout", 0)
    assert train(tmp_path / "whole", *exact).code == 0
    monkeypatch.setattr("nmtflex.training.start.largest_piece", lambda *_: 30)
    sizes, true_loss = [], gradients.loss_of

    def loss_of(model, batch, *options):
        sizes.append(batch.target_in.numel())
        return true_loss(model, batch, *options)

    monkeypatch.setattr(gradients, "loss_of", loss_of)
    outcome = train(tmp_path / "pieces", *exact)
    assert outcome.code == 0
    assert "memory holds about 30 tokens of a batch, and the largest has 70: " in outcome.err
    assert max(sizes) <= 30
    whole = load_file(tmp_path / "whole" / "checkpoints" / "best.safetensors")
    for name, tensor in load_file(tmp_path / "pieces" / "checkpoints" / "best.safetensors").items():
        torch.testing.assert_close(tensor, whole[name], rtol=1e-7, atol=1e-9)


def test_a_model_beyond_memory_is_refused_before_anything_is_made(train, tmp_path):
    outcome = train(tmp_path / "run", "--decoder-size", 10_000_000)
    assert outcome.code == 2
    assert outcome.err.count("\n") == 1
    # The four gates of Bahdanau's cell read a context of 2 x 6 units and the state.
    assert "(40000000 x 10000012)" in outcome.err
    assert "to be trained (weights, gradients, optimiser and --ema), but " in outcome.err
    assert not (tmp_path / "run").exists()


def test_no_memory_in_pytorch_is_one_line_anywhere(command_line, tiny_run, monkeypatch):
    def fail(*_):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9")

    monkeypatch.setattr("nmtflex.decoding.opening.load_run", fail)
    outcome = command_line("eval", tiny_run)
    assert outcome.code == 1
    assert outcome.err == (
        "nmtflex: error: not enough memory: DefaultCPUAllocator: can't allocate memory: you tried "
        "to allocate 9\n"
    )


def test_a_pair_that_memory_does_not_hold_is_left_out_and_named(train, made, tmp_path, monkeypatch):
    true_collate = Batches.collate

    def collate(self, pairs):
        if BAD in pairs:
            raise MemoryError
        return true_collate(self, pairs)

    monkeypatch.setattr(Batches, "collate", collate)
    outcome = train(tmp_path / "run", "--epochs", 1)
    assert outcome.code == 0
    line = next(line for line in outcome.err.splitlines() if "even alone" in line)
    assert f"not enough memory for line {BAD + 1} of {made / 'train.lo'} (source " in line
    assert "tokens) even alone: left out (1 so far); preprocess with a lower --max-length" in line
    assert outcome.err.splitlines()[-1].endswith("; 1 pair left out for lack of memory")


def test_memory_that_holds_nothing_stops_the_run(train, tmp_path, monkeypatch):
    too_large(monkeypatch, 0)
    outcome = train(tmp_path / "run", "--updates", 9, "--bad-updates", 2)
    assert outcome.code == 1
    assert "update 2 was the last of 2 in a row that were skipped" in outcome.err
    assert "not enough memory for lines" in outcome.err


def test_no_memory_elsewhere_is_one_line(train, command_line, made, tmp_path, monkeypatch):
    def fail(self):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9")

    monkeypatch.setattr("nmtflex.training.loop.Trainer._next_epoch", fail)
    outcome = train(tmp_path / "run", "--updates", 30)
    assert outcome.code == 1
    assert (
        "nmtflex: error: not enough memory outside a batch's gradient (DefaultCPUAllocator: can't "
        "allocate memory: you tried to allocate 9); the training stopped at update 10, and the "
        "last checkpoint, of update 10, is intact: free some memory, or in another --run lower "
        "--batch-tokens or --valid-beam, and give the command again\n"
    ) in outcome.err


def test_another_error_keeps_its_trace(train, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("a bug")

    monkeypatch.setattr(gradients, "loss_of", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        train(tmp_path / "run", "--updates", 3)


def budget(run: Path) -> int:
    return json.loads((run / "config.json").read_text())["train"]["batch_tokens"]


def test_the_budget_is_found_told_and_kept(command_line, tmp_path, monkeypatch):
    """A hundredth of an epoch has 553 tokens, ends of sentences counted."""
    for language in ("lo", "up"):
        (tmp_path / f"train.{language}").write_text((" ".join("abcdefgh" * 4) + "\n") * 1677)
    data, auto = tmp_path / "prepared", "auto"
    languages = ("--source-lang", "lo", "--target-lang", "up")
    made = command_line("preprocess", *languages, "--train", tmp_path / "train", "--out", data)
    assert made.code == 0

    def train(name, updates, tokens):
        options = (*MODEL, *PLACE, "--updates", updates, "--batch-tokens", tokens)
        return command_line("train", data, "--run", tmp_path / name, *options)

    outcome = train("run", 2, auto)
    assert outcome.code == 0
    assert budget(tmp_path / "run") == 512
    assert "nmtflex: --batch-tokens auto: 512 tokens a batch" in outcome.err
    monkeypatch.setattr("nmtflex.training.budget.available_memory", lambda: 0)
    assert train("run", 4, auto).code == 0
    assert budget(tmp_path / "run") == 512  # found once
    assert train("run", 5, 512).code == 0
    assert "--batch-tokens was 512, not 128" in train("run", 6, 128).err
    assert train("small", 1, auto).code == 0
    assert budget(tmp_path / "small") == 256
    assert train("plain", 5, 512).code == 0
    assert tensors(tmp_path / "run", 5) == tensors(tmp_path / "plain", 5)


def test_auto_may_stand_in_a_file(train, tmp_path):
    options = tmp_path / "options.toml"
    options.write_text('batch-tokens = "auto"\n')
    assert train(tmp_path / "run", "--updates", 2, "--config", options, batch=()).code == 0
    assert budget(tmp_path / "run") == 256
    options.write_text("batch-tokens = 64\n")
    assert train(tmp_path / "other", "--updates", 2, "--config", options, batch=()).code == 0
    assert budget(tmp_path / "other") == 64
    options.write_text('batch-tokens = "many"\n')
    outcome = train(tmp_path / "third", "--config", options, batch=())
    assert outcome.code == 2
    assert "many" in outcome.err


@pytest.mark.parametrize("value", ["many", "-1", "0", "1.5"])
def test_what_is_no_budget(train, tmp_path, value):
    outcome = train(tmp_path / "run", batch=("--batch-tokens", value))
    assert outcome.code == 2
    assert outcome.err.startswith("nmtflex: error: ")
    assert "--batch-tokens" in outcome.err
    assert value in outcome.err
    assert not (tmp_path / "run").exists()


def test_auto_and_sentences_exclude_each_other(train, tmp_path):
    outcome = train(tmp_path / "run", "--batch-tokens", "auto")
    assert outcome.code == 2
    assert "give --batch-tokens or --batch-sentences, not both" in outcome.err
