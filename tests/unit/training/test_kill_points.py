"""A process killed between any two steps of writing: what is under a final name is whole."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from nmtflex.config import DeviceConfig
from nmtflex.files import atomic_file, atomic_folder
from nmtflex.runs.folder import RunFolder
from nmtflex.runs.opening import load_run
from nmtflex.training.checkpoint import clear_leftovers, save_best, save_checkpoint
from nmtflex.training.optimizers.adam import Adam
from nmtflex.training.progress import Progress
from nmtflex.training.resume import resume

STEPS = {  # of those that Python tells of before they happen
    "open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.scandir",
    "tempfile.mkstemp", "tempfile.mkdtemp", "fcntl.flock",
}  # fmt: skip


def arm(point: int) -> None:
    """Kill this process before its ``point``-th step, syncs counted."""
    left = [point]

    def step(event: str, _arguments: object = ()) -> None:
        if event in STEPS:
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1

    sync = os.fsync

    def counted(handle: int) -> None:
        step("open")
        sync(handle)
        step("open")

    os.fsync = counted
    sys.addaudithook(step)


def killed(work: Callable[[], object], prepare: Callable[[], None]) -> bool:
    """Do something in a fork that ``prepare`` has armed; tell whether it was killed."""
    if not (pid := os.fork()):
        code = 70
        try:
            prepare()
            work()
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, -signal.SIGKILL, -signal.SIGXFSZ)
    return code != 0


def limit_files(size: int) -> None:
    """Kill this process in the write that would make a file longer than so many bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


class Saving:
    """A run of three saved updates, of which a save keeps two."""

    def __init__(self, run: Path) -> None:
        self.path = run
        self.folder = RunFolder(run)
        self.model = load_run(run, DeviceConfig(device="cpu", threads=1)).model
        self.optimizer = Adam(self.model.parameters())
        for update in (1, 2):
            self.learn(update)
            self.save(update)

    def learn(self, update: int) -> None:
        for weight in self.model.parameters():
            weight.grad = torch.full_like(weight, 1.0 / update)
        self.optimizer.step()

    def save(self, update: int, seconds: float = 0.0) -> None:
        progress = Progress(rate=0.1, update=update, seconds=seconds)
        save_checkpoint(self.folder, self.model, self.optimizer, progress, keep=2)
        save_best(self.folder, self.model, {"update": str(update)})

    def resume(self) -> Progress:
        """Do what the next start does."""
        clear_leftovers(self.folder)
        resumed = resume(self.folder, self.model, self.optimizer)
        assert resumed is not None
        assert resumed.notes == []
        names = {path.name for path in self.folder.checkpoints.iterdir()}
        assert all(name[0] != "." for name in names), names
        assert {path.name for path in self.folder.updates()[-1].iterdir()} == {
            "weights.safetensors", "trainer.safetensors", "progress.json",
        }  # fmt: skip
        return resumed.progress


@pytest.fixture
def saving(tiny_run) -> Saving:
    return Saving(tiny_run)


@pytest.mark.parametrize("again", [False, True], ids=["a new update", "after its validation"])
def test_a_checkpoint_killed_between_its_steps(saving, tmp_path, again):
    """Before, between and after: open, write, sync, rename, and pruning the oldest."""
    saving.learn(3)
    if again:
        saving.save(3)
    before = tmp_path / "before"
    shutil.copytree(saving.path, before)
    state = {name: weight.clone() for name, weight in saving.model.named_parameters()}
    found, point = set(), 0
    while killed(lambda: saving.save(3, seconds=9.0), partial(arm, point)):
        progress = saving.resume()
        found.add((progress.update, progress.seconds))
        if progress.update == 3:
            assert all(torch.equal(state[name], w) for name, w in saving.model.named_parameters())
        load_run(saving.path, DeviceConfig(device="cpu", threads=1))  # the best are whole
        shutil.rmtree(saving.path)
        shutil.copytree(before, saving.path)
        saving.model.load_state_dict(state)
        point += 1
    assert point > (12 if again else 40)
    assert found == ({(3, 0.0), (3, 9.0)} if again else {(2, 0.0), (3, 9.0)})
    assert saving.resume().seconds == 9.0


def test_a_checkpoint_killed_in_the_middle_of_a_write(saving):
    saving.learn(3)
    longest = 0
    for size in (0, 1, 100, 1000, 3000):
        assert killed(lambda: saving.save(3), partial(limit_files, size)), size
        left = list(saving.folder.checkpoints.rglob(".*/*.safetensors*"))
        left += list(saving.folder.checkpoints.rglob(".*/.*.safetensors*"))
        longest = max([longest, *(path.stat().st_size for path in left)])
        assert saving.resume().update == 2
    assert longest == 3000


def test_a_file_killed_between_its_steps(tmp_path):
    path = tmp_path / "folder" / "file"
    path.parent.mkdir()
    path.write_bytes(b"old")

    def write() -> None:
        with atomic_file(path) as file:
            file.write(b"new" * 9000)

    found, point = set(), 0
    while killed(write, partial(arm, point)):
        found.add(path.read_bytes())
        path.write_bytes(b"old")
        point += 1
    assert point > 5
    assert found == {b"old", b"new" * 9000}


def test_a_folder_killed_between_its_steps(tmp_path):
    """As a prepared folder and a new run are made; the next one made sweeps up."""
    path = tmp_path / "made"

    def make() -> None:
        with atomic_folder(path) as folder:
            (folder / "inner").mkdir()
            (folder / "inner" / "a").write_text("a")
            (folder / "b").write_text("b")

    point, left = 0, 0
    while killed(make, partial(arm, point)):
        left += any(tmp_path.glob(".made.*"))
        if path.exists():
            assert sorted(item.name for item in path.rglob("*")) == ["a", "b", "inner"]
            shutil.rmtree(path)
        make()
        assert [item.name for item in tmp_path.iterdir()] == ["made"]
        shutil.rmtree(path)
        point += 1
    assert left > 5


def test_a_folder_that_a_living_process_makes_is_left_alone(tmp_path):
    path = tmp_path / "made"

    def make_it_too() -> None:
        with atomic_folder(path) as second:
            (second / "b").write_text("b")

    with atomic_folder(path) as first:
        (first / "a").write_text("a")
        make_it_too()
        assert (first / "a").exists()
        shutil.rmtree(path)
    assert [item.name for item in path.iterdir()] == ["a"]


def test_load_file_agrees(saving):
    """The checksum is one more word: the file is an ordinary safetensors file."""
    found = load_file(saving.folder.best)
    for name, weight in saving.model.named_parameters():
        assert torch.equal(found[name], weight)
