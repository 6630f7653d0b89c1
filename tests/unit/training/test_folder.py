"""The run folder of a training: made once, locked while it is trained."""

from __future__ import annotations

import json
import re

import pytest
from letters import CPU, small_model

from nmtflex.config import TrainConfig
from nmtflex.errors import DataError, OptionError, RunError
from nmtflex.training.describe import Options
from nmtflex.training.folder import LockedFolder, open_folder


@pytest.fixture
def prepared(tmp_path):
    folder = tmp_path / "prepared"
    for name in ("pipeline", "raw"):
        (folder / name).mkdir(parents=True)
        (folder / name / "file.txt").write_text(name)
    return folder


@pytest.fixture
def opened(tmp_path, prepared):
    """Open a folder as a training of so many processes with this option would."""

    def run(processes=1, seed=1):
        loop = TrainConfig(data=prepared, run=tmp_path / "run", seed=seed)
        options = Options(small_model(), loop, CPU)
        sizes = {"source_size": 9, "target_size": 9, "longest_source": 5}
        config = {name: group.to_dict() for name, group in options._asdict().items()}
        config |= {"format": 2, "data": sizes, "processes": processes}
        return open_folder(tmp_path / "run", prepared, config, options), config

    return run


def test_a_new_folder_has_all_that_translating_needs(opened, prepared):
    folder, config = opened()
    assert json.loads(folder.config.read_text()) == config
    assert (folder.pipeline / "file.txt").read_text() == "pipeline"
    assert (folder.raw / "file.txt").read_text() == "raw"
    assert list(folder.checkpoints.iterdir()) == []


def test_a_run_keeps_the_processes_that_it_began_with(opened):
    folder, _ = opened(processes=3)
    del folder
    folder, config = opened(processes=1)
    assert config["processes"] == 3
    assert json.loads(folder.config.read_text())["processes"] == 3


def test_other_options_are_refused_and_change_nothing(opened):
    folder, _ = opened(seed=1)
    path, before = folder.config, folder.config.read_bytes()
    del folder
    with pytest.raises(OptionError, match="--seed was 1, not 2"):
        opened(seed=2)
    assert path.read_bytes() == before


def test_a_folder_is_locked_as_long_as_it_is_held(opened):
    folder, _ = opened()
    with pytest.raises(RunError, match=re.escape(str(folder.path))):
        LockedFolder(folder.path)
    path = folder.path
    del folder
    assert LockedFolder(path).best == path / "checkpoints" / "best.safetensors"


def test_what_a_killed_training_left_half_written_is_removed(opened):
    folder, _ = opened()
    left = folder.checkpoints / ".update-00000004.x1"
    left.mkdir()
    del folder
    opened()
    assert not left.exists()


def test_links_out_of_either_folder_are_refused(opened, prepared, tmp_path):
    (tmp_path / "secret").write_text("")
    (prepared / "raw" / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(DataError, match="link"):
        opened()
    assert not (tmp_path / "run").exists()
    (prepared / "raw" / "link").unlink()
    opened()
    (tmp_path / "run" / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(RunError, match="link"):
        opened()


def test_a_folder_that_is_no_run_is_left_alone(opened, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("keep")
    with pytest.raises(RunError, match=re.escape(str(tmp_path / "run"))):
        opened()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["mine"]
