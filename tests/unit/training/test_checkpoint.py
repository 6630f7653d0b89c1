"""A checkpoint's trainer: what is not the optimiser's of the model is refused, with a remedy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor

from nmtflex.config import DeviceConfig
from nmtflex.errors import RunError
from nmtflex.runs.folder import RunFolder, update_of
from nmtflex.runs.opening import load_run
from nmtflex.runs.weights import load_tensors, save_tensors
from nmtflex.training.checkpoint import (
    PROGRESS,
    TRAINER,
    check_room,
    load_checkpoint,
    save_checkpoint,
)
from nmtflex.training.optimizers.adam import Adam
from nmtflex.training.progress import Progress
from nmtflex.training.resume import resume

NAME = "output.projection.bias"


def model_and_optimizer(run: Path):
    model = load_run(run, DeviceConfig(device="cpu", threads=1)).model
    return model, Adam(model.parameters())


@pytest.fixture
def checkpoint(tiny_run) -> Path:
    model, optimizer = model_and_optimizer(tiny_run)
    for weight in model.parameters():
        weight.grad = torch.ones_like(weight)
    optimizer.step()
    save_checkpoint(RunFolder(tiny_run), model, optimizer, Progress(rate=0.1, update=1), keep=2)
    return tiny_run / "checkpoints" / "update-00000001"


def test_what_is_saved_is_loaded(tiny_run, checkpoint) -> None:
    model, optimizer = model_and_optimizer(tiny_run)
    assert load_checkpoint(checkpoint, model, optimizer) == Progress(rate=0.1, update=1)
    state = optimizer.state[dict(model.named_parameters())[NAME]]
    assert (state["exp_avg"] != 0).all()


def test_a_disk_that_holds_no_checkpoint_is_named(tiny_run, checkpoint, monkeypatch) -> None:
    model, _ = model_and_optimizer(tiny_run)
    model.output.projection.weight.requires_grad_(False)
    weights = sum(weight.numel() for weight in model.parameters())
    # The checkpoint's weights, the best ones, and two means of each weight that is trained.
    needed = 4 * (4 * weights - 2 * model.output.projection.weight.numel())
    usage = shutil.disk_usage(tiny_run)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=needed))
    check_room(RunFolder(tiny_run), model, 2)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage._replace(free=needed - 1))
    with pytest.raises(RunError) as raised:
        check_room(RunFolder(tiny_run), model, 2)
    assert str(tiny_run) in str(raised.value)
    assert f"{needed - 1:,} bytes of its disk are free" in str(raised.value)
    assert f"takes {needed:,};" in str(raised.value)


def without(tensors: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    return {key: tensor for key, tensor in tensors.items() if key != name}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t | {f"{NAME}:exp_avg": torch.zeros(3)}, f"{NAME}:exp_avg is not the optimiser"),
        (lambda t: t | {f"{NAME}:step": torch.zeros(2)}, f"{NAME}:step is not the optimiser's"),
        (lambda t: without(t, f"{NAME}:exp_avg_sq"), f"{NAME} has exp_avg, step of the optimiser"),
        (
            lambda t: (
                t | {f"x:{key}": torch.zeros(()) for key in ("exp_avg", "exp_avg_sq", "step")}
            ),
            "x:exp_avg is not the optimiser's",
        ),
        (lambda t: without(t, "rng.cpu"), "rng.cpu"),
        (lambda t: t | {"rng.cpu": torch.zeros(5, dtype=torch.uint8)}, "RNG state"),
        (lambda t: t | {"rng.cpu": torch.zeros(5)}, "RNG state"),
    ],
)
def test_another_trainer_is_refused(tiny_run, checkpoint, change, message) -> None:
    tensors, about = load_tensors(checkpoint / TRAINER)
    save_tensors(checkpoint / TRAINER, change(tensors), about)
    with pytest.raises(RunError, match=rf"{checkpoint} cannot be resumed: .*{message}"):
        load_checkpoint(checkpoint, *model_and_optimizer(tiny_run))


def test_random_numbers_go_on_where_they_were(tiny_run) -> None:
    model, optimizer = model_and_optimizer(tiny_run)
    torch.manual_seed(4)
    torch.rand(3)
    save_checkpoint(RunFolder(tiny_run), model, optimizer, Progress(rate=0.1, update=1), keep=2)
    expected = torch.rand(5)
    torch.manual_seed(5)
    load_checkpoint(tiny_run / "checkpoints" / "update-00000001", model, optimizer)
    assert torch.equal(torch.rand(5), expected)


def test_the_last_checkpoints_are_kept_and_the_last_one_is_resumed(tiny_run) -> None:
    folder = RunFolder(tiny_run)
    model, optimizer = model_and_optimizer(tiny_run)
    for update in range(1, 6):
        save_checkpoint(folder, model, optimizer, Progress(rate=0.1, update=update), keep=3)
    assert [update_of(path) for path in folder.updates()] == [3, 4, 5]
    assert resume(folder, model, optimizer).progress.update == 5


def test_changed_progress_is_refused(tiny_run, checkpoint) -> None:
    path = checkpoint / PROGRESS
    path.write_text(path.read_text().replace('"rate": 0.1', '"rate": 0.2'))
    with pytest.raises(RunError, match=rf"{path} is damaged"):
        load_checkpoint(checkpoint, *model_and_optimizer(tiny_run))
