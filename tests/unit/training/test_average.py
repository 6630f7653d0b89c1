"""The mean of a run's checkpoints, against a loop of its own, and the runs that have none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from nmtflex.config import AverageConfig, DeviceConfig
from nmtflex.errors import OptionError, RunError
from nmtflex.runs.opening import load_run
from nmtflex.training.average import average_checkpoints

UPDATES = (40, 80, 120, 160)


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def checkpoint(run: Path, update: int) -> Path:
    return run / "checkpoints" / f"update-{update:08d}"


@pytest.fixture
def run(tiny_run) -> Path:
    """A run with four checkpoints of random weights."""
    draw = np.random.default_rng(3)
    weights = load_file(tiny_run / "checkpoints" / "best.safetensors")
    for update in UPDATES:
        folder = checkpoint(tiny_run, update)
        folder.mkdir()
        drawn = {k: draw.normal(size=v.shape).astype(v.dtype) for k, v in weights.items()}
        save_file(drawn, folder / "weights.safetensors", {"update": str(update)})
        (folder / "progress.json").write_text(json.dumps({"rate": 0.001, "update": update}))
    return tiny_run


def average(run: Path, last: int = 3, out: Path | None = None):
    return average_checkpoints(AverageConfig(base_run=run, run=out, last=last))


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_the_mean_is_that_of_a_loop(run) -> None:
    before = contents(run)
    made = average(run)
    assert made.folder.path == run.with_name("tiny-average3")
    assert made.updates == [80, 120, 160]
    mean = load_file(made.folder.best)
    parts = [load_file(checkpoint(run, update) / "weights.safetensors") for update in made.updates]
    assert mean.keys() == parts[0].keys()
    for name, found in mean.items():
        total = sum(part[name].astype(np.float64) for part in parts)
        assert found.dtype == np.float32
        assert (found == (total / 3).astype(np.float32)).all()
    assert contents(run) == before


def test_it_says_what_went_in(run, tmp_path) -> None:
    made = average(run, 2, tmp_path / "deep" / "mean")
    about = json.loads(made.folder.config.read_text())
    assert about["average"] == {"base_run": str(run), "updates": [120, 160], "rate": 0.001}
    assert about["model"] == json.loads((run / "config.json").read_text())["model"]
    with made.folder.best.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        words = json.loads(file.read(size))["__metadata__"]
    assert len(words.pop("sha256")) == 64
    assert words == {"update": "160", "average": "120 160"}
    opened = load_run(made.folder.path, DeviceConfig(device="cpu", threads=1))
    assert opened.update == 160
    assert contents(made.folder.raw) == contents(run / "raw")
    assert contents(made.folder.pipeline) == contents(run / "pipeline")


def test_float64_stays_float64(run) -> None:
    for update in UPDATES:
        path = checkpoint(run, update) / "weights.safetensors"
        save_file({k: v.astype(np.float64) for k, v in load_file(path).items()}, path)
    assert {v.dtype for v in load_file(average(run).folder.best).values()} == {np.dtype("f8")}


def test_the_last_one_alone_is_that_one(run) -> None:
    mean = load_file(average(run, 1).folder.best)
    last = load_file(checkpoint(run, 160) / "weights.safetensors")
    assert all((mean[name] == last[name]).all() for name in last)


def test_the_current_folder_has_a_name_too(run, monkeypatch) -> None:
    monkeypatch.chdir(run)
    assert AverageConfig(base_run=Path(), last=4).out == run.with_name("tiny-average4")


def test_an_unvalidated_run_can_be_averaged(run) -> None:
    (run / "checkpoints" / "best.safetensors").unlink()
    assert average(run).folder.best.is_file()


@pytest.mark.parametrize(
    ("train", "remedy"),
    [
        ({}, "has --keep 2; train on with --keep 5 and"),
        ({"keep": 4}, "has --keep 4; train on with --keep 5 and"),
        ({"keep": "4"}, "has --keep 2; train on with --keep 5 and"),
        ({"keep": 5}, "has --keep 5 and made no more yet; train on with"),
    ],
)
def test_too_few_checkpoints(run, train, remedy) -> None:
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(config | {"train": train}))
    with pytest.raises(RunError) as caught:
        average(run, 5)
    assert str(caught.value) == (
        f"{run} has 4 checkpoints (of updates 40, 80, 120, 160), fewer than --last 5: its training "
        f"{remedy} more --epochs or --updates, or give --last 4"
    )


def test_no_checkpoints(run) -> None:
    for update in UPDATES:
        shutil.rmtree(checkpoint(run, update))
    with pytest.raises(RunError) as caught:
        average(run, 1)
    assert str(caught.value) == (
        f"{run} has 0 checkpoints, fewer than --last 1: its training has --keep 2 and made no more "
        f"yet; train on with more --epochs or --updates"
    )


def test_an_average_has_no_checkpoints_of_its_own(run) -> None:
    mean = average(run).folder.path
    with pytest.raises(RunError, match=f"{mean} was made by nmtflex average and has no check"):
        average(mean, 1)


def test_a_folder_that_is_there_is_not_overwritten(run, tmp_path) -> None:
    with pytest.raises(OptionError, match=f"--run {tmp_path} exists already; remove it or"):
        average(run, 2, tmp_path)


def truncated(run: Path) -> None:
    path = checkpoint(run, 120) / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-4])


def missing(run: Path) -> None:
    (checkpoint(run, 120) / "weights.safetensors").unlink()


def first_missing(run: Path) -> None:
    (checkpoint(run, 80) / "weights.safetensors").unlink()


def reshaped(run: Path) -> None:
    path = checkpoint(run, 120) / "weights.safetensors"
    tensors = load_file(path)
    name = "target_embedding.weight"
    save_file(tensors | {name: tensors[name][:5]}, path)


def renamed(run: Path) -> None:
    path = checkpoint(run, 120) / "weights.safetensors"
    tensors = load_file(path)
    tensors["other.weight"] = tensors.pop("target_embedding.weight")
    save_file(tensors, path)


def without_rate(run: Path) -> None:
    (checkpoint(run, 160) / "progress.json").write_text("{}")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (truncated, r"update-00000120/weights\.safetensors is truncated or damaged"),
        (first_missing, r"update-00000080/weights\.safetensors: No such file"),
        (missing, r"update-00000120/weights\.safetensors: .*[Nn]o such file"),
        (
            reshaped,
            r"00120/weights.* target_embedding\.weight has shape \(5, 6\) in the file, \(12",
        ),
        (renamed, r"00120/weights.* weight other\.weight has shape .* None in the model"),
        (without_rate, r"update-00000160/progress\.json: no learning rate"),
    ],
)
def test_damaged_checkpoints_are_named_and_nothing_is_left(run, damage, message) -> None:
    damage(run)
    with pytest.raises(RunError, match=message):
        average(run)
    assert [path.name for path in run.parent.iterdir()] == ["tiny"]
