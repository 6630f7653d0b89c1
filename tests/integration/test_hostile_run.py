"""Run folders and prepared folders that somebody made to do harm, and what they do."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from nmtflex.cli.app import main

pytestmark = pytest.mark.integration

MODEL = ["--embedding-size", 4, "--encoder-size", 3, "--decoder-size", 6]
PLACE = ["--threads", 1, "--device", "cpu"]
LOOP = ["--batch-sentences", 16, "--valid-beam", 1, "--updates", 2, *PLACE]


def call(*arguments: object) -> None:
    assert main([str(argument) for argument in arguments]) == 0


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with a prepared folder and a run with flexible attention."""
    folder = tmp_path_factory.mktemp("hostile")
    draw = random.Random(1)
    splits = []
    for split, pairs in (("train", 40), ("valid", 5)):
        lines = [" ".join(draw.choices("abcd", k=draw.randint(1, 6))) for _ in range(pairs)]
        (folder / f"{split}.lo").write_text("".join(f"{line}\n" for line in lines))
        (folder / f"{split}.up").write_text("".join(f"{line.upper()}\n" for line in lines))
        splits += [f"--{split}", folder / split]
    languages = ("--source-lang", "lo", "--target-lang", "up")
    call("preprocess", *languages, *splits, "--out", folder / "prepared")
    options = ("--run", folder / "run", "--attention", "flexible", *MODEL, *LOOP)
    call("train", folder / "prepared", *options)
    return folder


@pytest.fixture
def hostile(made, tmp_path) -> Path:
    """A copy of these, beside a folder of the victim's."""
    shutil.copytree(made, tmp_path / "made")
    (tmp_path / "home" / "update-00000000").mkdir(parents=True)
    for name in (".profile", "best.safetensors", "metrics.csv", "update-00000000/notes"):
        (tmp_path / "home" / name).write_text("precious\n")
    return tmp_path / "made"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def resume(command_line, hostile):
    options = [*MODEL, *LOOP, "--updates", 4]
    where = ("--run", hostile / "run", "--attention", "flexible")
    return command_line("train", hostile / "prepared", *where, *options)


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("checkpoints", "."),
        ("checkpoints/best.safetensors", "best.safetensors"),
        ("checkpoints/update-00000001", "update-00000000"),
        ("metrics.csv", "metrics.csv"),
        ("config.json", "config.json"),
        ("tensorboard", "."),
        (".lock", ".profile"),
    ],
)
def test_a_resumed_training_writes_nothing_outside_its_run(command_line, hostile, name, there):
    home = hostile.parent / "home"
    link = hostile / "run" / name
    if name == "config.json":
        link.rename(home / there)
    elif link.is_dir():
        shutil.rmtree(link)
    else:
        link.unlink(missing_ok=True)
    link.symlink_to(home / there)
    before = contents(home)
    outcome = resume(command_line, hostile)
    assert outcome.code == 1
    assert f"{link} is a link out of {hostile / 'run'}; replace it" in outcome.err
    assert contents(home) == before


def test_the_lock_empties_no_file(command_line, hostile) -> None:
    victim = hostile.parent / "home" / ".profile"
    (hostile / "run" / ".lock").unlink()
    (hostile / "run" / ".lock").hardlink_to(victim)
    assert resume(command_line, hostile).code == 0
    assert victim.read_text() == "precious\n"


def test_nothing_outside_a_prepared_folder_is_copied_into_a_run(command_line, hostile) -> None:
    link = hostile / "prepared" / "raw" / "secret"
    link.symlink_to(hostile.parent / "home" / ".profile")
    options = ("--run", hostile / "new", *MODEL, *LOOP)
    outcome = command_line("train", hostile / "prepared", *options)
    assert outcome.code == 1
    assert f"{link} is a link out of {hostile / 'prepared'}" in outcome.err
    assert not (hostile / "new").exists()


def test_nothing_outside_a_run_is_copied_into_an_average(command_line, hostile) -> None:
    link = hostile / "run" / "raw" / "secret"
    link.symlink_to(hostile.parent / "home")
    outcome = command_line("average", hostile / "run", "--last", 1)
    assert outcome.code == 1
    assert f"{link} is a link out of {hostile / 'run'}" in outcome.err


def test_a_sweep_writes_nothing_outside_the_run(command_line, hostile) -> None:
    pytest.importorskip("matplotlib")
    link = hostile / "run" / "sweep-valid-beam5.csv"
    link.symlink_to(hostile.parent / "home" / ".profile")
    outcome = command_line("sweep", hostile / "run", "--split", "valid", "--tau", "inf", *PLACE)
    assert outcome.code == 1
    assert f"{link} is a link out of {hostile / 'run'}" in outcome.err
    assert (hostile.parent / "home" / ".profile").read_text() == "precious\n"


def test_a_run_that_links_to_its_files_still_translates(command_line, hostile) -> None:
    """As in a cache of downloads, which keeps files elsewhere under their hashes."""
    for path in sorted((hostile / "run").rglob("*")):
        if path.is_file():
            path.rename(hostile.parent / f"blob-{path.name}-{len(path.parts)}")
            path.symlink_to(hostile.parent / f"blob-{path.name}-{len(path.parts)}")
    options = ("-i", hostile / "valid.lo", *PLACE)
    assert command_line("translate", hostile / "run", *options).code == 0


def test_training_data_without_a_sentence(command_line, hostile) -> None:
    folder = hostile / "prepared"
    manifest = json.loads((folder / "manifest.json").read_text())
    for side in ("source", "target"):
        (folder / f"train.{side}.bin").write_bytes(b"")
        (folder / f"train.{side}.offsets").write_bytes(bytes(8 * 41))
        manifest["files"][f"train.{side}.bin"]["bytes"] = 0
    (folder / "manifest.json").write_text(json.dumps(manifest))
    outcome = command_line("train", folder, "--run", hostile / "new", *MODEL, *LOOP)
    assert outcome.code == 1
    assert f"{folder} has no training data" in outcome.err


def test_a_base_run_that_says_nothing_of_its_training(command_line, hostile) -> None:
    path = hostile / "run" / "config.json"
    config = json.loads(path.read_text())
    del config["train"]
    path.write_text(json.dumps(config))
    outcome = command_line("finetune", hostile / "run", "--run", hostile / "new", *PLACE)
    assert outcome.code == 2
    assert (
        f"{hostile / 'run'} was trained on None, which does not exist; give --data" in outcome.err
    )


def test_a_message_obeys_no_terminal_and_ends(command_line, hostile) -> None:
    path = hostile / "run" / "config.json"
    config = json.loads(path.read_text())
    config["model"]["\x1b[2J"] = 1
    path.write_text(json.dumps(config))
    outcome = command_line("translate", hostile / "run")
    assert (outcome.code, outcome.err.count("\n")) == (1, 1)
    assert "\x1b" not in outcome.err
    config["model"] = "long" * 10_000
    path.write_text(json.dumps(config))
    assert len(command_line("translate", hostile / "run").err) < 4200


@pytest.mark.parametrize(
    "name", ["config.json", "pipeline/source.vocabulary", "checkpoints/best.safetensors"]
)
def test_a_file_without_end_is_not_read(command_line, hostile, name) -> None:
    link = hostile / "run" / name
    link.unlink()
    link.symlink_to("/dev/zero")
    options = ("-i", hostile / "valid.lo", *PLACE)
    outcome = command_line("translate", hostile / "run", *options)
    assert outcome.code == 1
    assert f"{link} is not a file but a device or a pipe; remove it" in outcome.err


def test_prepared_files_without_end_are_not_read(command_line, hostile) -> None:
    link = hostile / "prepared" / "pipeline" / "source.vocabulary"
    link.unlink()
    link.symlink_to("/dev/zero")
    outcome = command_line("train", hostile / "prepared", "--run", hostile / "new")
    assert outcome.code == 1
    assert f"{link} is not a file but a device or a pipe" in outcome.err


def test_a_pipeline_without_end_is_not_taken_over(command_line, hostile) -> None:
    like = hostile / "run" / "pipeline" / "pipeline.json"
    like.unlink()
    like.symlink_to("/dev/zero")
    outcome = command_line(
        "preprocess", "--source-lang", "lo", "--target-lang", "up", "--test", hostile / "valid",
        "--like", hostile / "run", "--out", hostile / "again",
    )  # fmt: skip
    assert outcome.code == 1
    assert f"{like} is not a file but a device or a pipe" in outcome.err
