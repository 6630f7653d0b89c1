"""What is damaged on disk, a disk that fills, and data that changes under a run."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from nmtflex.cli.app import main
from nmtflex.errors import RunError
from nmtflex.runs.weights import load_tensors

pytestmark = pytest.mark.integration

PLACE = ["--threads", 1, "--device", "cpu"]
MODEL = ["--embedding-size", 6, "--encoder-size", 6, "--decoder-size", 6]
LOOP = [
    "--batch-sentences",
    16,
    "--valid-beam",
    1,
    "--log-every",
    1,
    "--validate-every",
    2,
    "--best-by",
    "perplexity",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A prepared folder, and a run of updates 2, 4 and 6."""
    folder = tmp_path_factory.mktemp("made")
    draw = random.Random(3)
    splits = []
    for split, pairs in (("train", 100), ("valid", 6)):
        lines = [" ".join(draw.choices("abcd", k=draw.randint(1, 6))) for _ in range(pairs)]
        (folder / f"{split}.lo").write_text("".join(f"{line}\n" for line in lines))
        (folder / f"{split}.up").write_text("".join(f"{line.upper()}\n" for line in lines))
        splits += [f"--{split}", folder / split]
    languages = ("--source-lang", "lo", "--target-lang", "up")
    arguments = ["preprocess", *languages, *splits, "--out", folder / "prepared"]
    assert main([str(argument) for argument in arguments]) == 0
    arguments = ["train", folder / "prepared", "--run", folder / "run", *MODEL, *LOOP, *PLACE]
    for updates in (1, 6):  # what is compiled first may round otherwise than what comes from disk
        assert main([str(argument) for argument in [*arguments, "--updates", updates]]) == 0
    return folder


@pytest.fixture
def copy(made, tmp_path) -> Path:
    shutil.copytree(made, tmp_path / "made")
    return tmp_path / "made"


@pytest.fixture
def train(command_line):
    def run(folder: Path, *options: object, updates: int = 8):
        options = (*MODEL, *LOOP, *PLACE, "--updates", updates, *options)
        return command_line("train", folder / "prepared", "--run", folder / "run", *options)

    return run


def checkpoint(folder: Path, update: int) -> Path:
    return folder / "run" / "checkpoints" / f"update-{update:08d}"


def flip(path: Path, place: int) -> None:
    """Change one bit."""
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def weights(folder: Path, update: int) -> dict[str, list]:
    found = load_file(checkpoint(folder, update) / "weights.safetensors")
    return {name: tensor.tolist() for name, tensor in found.items()}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["weights.safetensors", "trainer.safetensors"])
@pytest.mark.parametrize("place", [0.5, -1])
def test_flipped_bits_go_back_to_the_checkpoint_before(train, made, copy, tmp_path, name, place):
    path = checkpoint(copy, 6) / name
    flip(path, int(place * path.stat().st_size) if place > 0 else place)
    outcome = train(copy)
    assert outcome.code == 0
    told = [line for line in outcome.err.splitlines() if "cannot be resumed" in line]
    assert len(told) == 1
    start = f"nmtflex: checkpoint {path.parent} cannot be resumed: {path} is damaged: "
    assert told[0].startswith(start)
    assert "; it is now update-00000006.damaged" in told[0]
    assert told[0].endswith("update 4")
    assert f"resuming {copy / 'run'} at update 4" in outcome.err
    shutil.copytree(made, tmp_path / "whole")
    assert train(tmp_path / "whole").code == 0
    assert weights(copy, 8) == weights(tmp_path / "whole", 8)
    assert path.parent.with_name("update-00000006.damaged").is_dir()
    assert "damaged" not in train(copy, updates=10).err


def test_a_flipped_digit_of_the_progress(train, copy):
    path = checkpoint(copy, 6) / "progress.json"
    path.write_text(path.read_text().replace('"target_tokens": ', '"target_tokens": 1'))
    outcome = train(copy)
    assert outcome.code == 0
    assert f"{path} is damaged: it does not match its checksum; it is now" in outcome.err


def test_a_checkpoint_under_the_name_of_another(train, copy):
    shutil.rmtree(checkpoint(copy, 6))
    checkpoint(copy, 4).rename(checkpoint(copy, 6))
    outcome = train(copy)
    assert outcome.code == 1
    assert f"{checkpoint(copy, 6) / 'progress.json'} is of update 4" in outcome.err


@pytest.mark.parametrize("damage", ["truncated", "gone", "empty"])
def test_other_damage_goes_back_too(train, copy, damage):
    path = checkpoint(copy, 6) / "trainer.safetensors"
    content = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(content[:-10] if damage == "truncated" else b"")
    outcome = train(copy)
    assert outcome.code == 0
    assert f"cannot be resumed: {path}" in outcome.err
    assert "the one before it, update 4" in outcome.err


def test_no_checkpoint_is_whole(train, copy):
    for update in (4, 6):
        flip(checkpoint(copy, update) / "weights.safetensors", -5)
    before = sorted(path.name for path in (copy / "run" / "checkpoints").iterdir())
    outcome = train(copy)
    assert outcome.code == 1
    assert outcome.err.count("\n") == 1
    for update in (4, 6):
        assert f"checkpoint {checkpoint(copy, update)} cannot be resumed" in outcome.err
    assert f"all checkpoints of {copy / 'run'} are damaged" in outcome.err
    assert "best.safetensors with nmtflex finetune" in outcome.err
    assert sorted(path.name for path in (copy / "run" / "checkpoints").iterdir()) == before


def test_a_checkpoint_without_checksums_is_taken_as_it_is(train, copy):
    """As older versions wrote it."""
    for name in ("weights", "trainer"):
        tensors, about = load_tensors(checkpoint(copy, 6) / f"{name}.safetensors")
        save_file(tensors, checkpoint(copy, 6) / f"{name}.safetensors", about)
    path = checkpoint(copy, 6) / "progress.json"
    younger = ("sha256", "skipped", "skipped_in_row", "batches_split", "pairs_left_out")
    old = {k: v for k, v in json.loads(path.read_text()).items() if k not in younger}
    path.write_text(json.dumps(old))
    outcome = train(copy)
    assert outcome.code == 0
    assert f"resuming {copy / 'run'} at update 6" in outcome.err


@pytest.mark.parametrize("command", [["translate"], ["eval", "--split", "valid"]])
def test_damaged_best_weights(command_line, copy, command):
    best = copy / "run" / "checkpoints" / "best.safetensors"
    flip(best, -100)
    outcome = command_line(command[0], copy / "run", *command[1:], *PLACE)
    assert outcome.code == 1
    message = outcome.err.splitlines()[-1]
    assert message.startswith(f"nmtflex: error: {best} is damaged: ")
    assert "weights.safetensors" in message
    shutil.copy(checkpoint(copy, 6) / "weights.safetensors", best)
    source = ("-i", copy / "valid.lo") if command[0] == "translate" else ()
    assert command_line(command[0], copy / "run", *command[1:], *source, *PLACE).code == 0


def test_a_bit_anywhere_in_a_file_of_weights_is_found(copy):
    """Each byte of the header, and some of the data: an error, or nothing changed by it."""
    path = copy / "run" / "checkpoints" / "best.safetensors"
    content = path.read_bytes()
    expected, about = load_tensors(path)
    header = 8 + int.from_bytes(content[:8], "little")
    found = 0
    for place in (*range(0, header, 3), *range(header, len(content), 97)):
        flip(path, place)
        try:
            tensors, words = load_tensors(path)
        except RunError:
            found += 1
        else:  # the name of the checksum itself, or a space
            assert words.keys() >= about.keys()
            assert all(tensors[name].equal(tensor) for name, tensor in expected.items())
        path.write_bytes(content)
    assert found > 100


def test_data_changed_under_a_run(train, copy):
    path = copy / "prepared" / "train.target.bin"
    flip(path, 20)
    outcome = train(copy)
    assert outcome.code == 1
    assert outcome.err == (
        f"nmtflex: error: {path} was changed after it was prepared: its SHA-256 is not the one in "
        f"manifest.json; restore the file, or prepare the folder again and train in "
        f"another --run\n"
    )
    flip(path, 20)
    assert train(copy).code == 0


def test_data_changed_while_training(train, copy, monkeypatch):
    from nmtflex.training.loop import Trainer

    path, true_update = copy / "prepared" / "train.target.bin", Trainer._update

    def update(self, *arguments):
        true_update(self, *arguments)
        flip(path, 20)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_update", update)
        outcome = train(copy, "--save-every", 1e-9, updates=7)
    assert outcome.code == 1
    assert f"{path} was changed after it was prepared" in outcome.err
    assert not checkpoint(copy, 7).exists()
    flip(path, 20)
    assert train(copy).code == 0


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "place",
    [
        "nmtflex.training.checkpoint.save_tensors",
        "nmtflex.training.checkpoint._write_progress",
        "nmtflex.training.loop.save_best",
        "nmtflex.training.metrics.Metrics.write",
        "os.fsync",
    ],
)
def test_a_full_disk(train, made, copy, tmp_path, monkeypatch, place):
    with monkeypatch.context() as patch:
        if place != "os.fsync":
            patch.setattr(place, full)
        else:
            patch.setattr("nmtflex.training.loop.save_checkpoint", full_in(patch, "os.fsync"))
        outcome = train(copy)
    assert outcome.code == 1
    last = outcome.err.splitlines()[-1]
    assert last.startswith("nmtflex: error: ")
    assert "No space left on device; the training stopped at update" in last
    assert "of update 6, is intact: " in last
    assert "Traceback" not in outcome.err
    assert train(copy).code == 0
    shutil.copytree(made, tmp_path / "whole")
    assert train(tmp_path / "whole").code == 0
    assert weights(copy, 8) == weights(tmp_path / "whole", 8)


def full_in(patch, name):
    """Save a checkpoint while a function of the system says that the disk is full."""
    from nmtflex.training.checkpoint import save_checkpoint

    def save(*arguments, **named):
        with patch.context() as inner:
            inner.setattr(name, full)
            save_checkpoint(*arguments, **named)

    return save


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 640 KiB, where this user may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=640k", "tmpfs", place]
    if (
        not shutil.which("mount")
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def test_a_disk_that_is_really_full(train, made, small_disk, tmp_path, monkeypatch):
    # It fills while the training runs; one that is full before is found before.
    monkeypatch.setattr("nmtflex.training.checkpoint.check_room", lambda *_: None)
    shutil.copytree(made / "prepared", small_disk / "prepared")
    assert train(small_disk, updates=2).code == 0
    room = os.statvfs(small_disk)
    filler = small_disk / "filler"
    filler.write_bytes(bytes(max(0, room.f_bavail * room.f_bsize - 24_000)))
    outcome = train(small_disk, "--keep", 5)
    assert outcome.code == 1
    last = outcome.err.splitlines()[-1]
    assert "No space left on device" in last
    assert "the same command again" in last
    assert "Traceback" not in outcome.err
    filler.unlink()
    assert train(small_disk, "--keep", 5).code == 0
    shutil.copytree(made / "prepared", tmp_path / "whole" / "prepared")
    assert train(tmp_path / "whole").code == 0
    assert weights(small_disk, 8) == weights(tmp_path / "whole", 8)


def test_preprocessing_on_a_full_disk(command_line, made, small_disk):
    (small_disk / "filler").write_bytes(bytes(640 * 1024 - 4096))
    command = (
        "preprocess", "--source-lang", "lo", "--target-lang", "up", "--train", made / "train",
        "--out", small_disk / "prepared",
    )  # fmt: skip
    outcome = command_line(*command)
    assert outcome.code == 1
    last = outcome.err.splitlines()[-1]
    assert "No space left on device; " in last
    assert str(small_disk) in last
    assert [path.name for path in small_disk.iterdir()] == ["filler"]
    (small_disk / "filler").unlink()
    assert command_line(*command).code == 0
