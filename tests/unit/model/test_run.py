"""Opening a run folder, and the folders that are none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from nmtflex.config import FORMAT, DeviceConfig
from nmtflex.errors import RunError
from nmtflex.model.run import load_run

CPU = DeviceConfig(device="cpu", threads=1)


def change(run: Path, **values: object) -> None:
    path = run / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_opens_ready_to_translate(tiny_run):
    run = load_run(tiny_run, CPU)
    assert run.update == 1
    assert not run.model.training
    assert run.model.source_size == run.model.target_size == 12
    assert run.pipeline.source.encode("a b") == [4, 5]


def test_float64_is_what_is_asked_for(tiny_run):
    run = load_run(tiny_run, DeviceConfig(device="cpu", threads=1, dtype="float64"))
    assert run.model.target_embedding.weight.dtype == torch.float64


def test_a_moved_run_is_the_same_run(tiny_run, tmp_path):
    moved = tmp_path / "elsewhere" / "run"
    shutil.copytree(tiny_run, moved)
    shutil.rmtree(tiny_run)
    assert load_run(moved, CPU).folder.path == moved


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(RunError, match=r"gone: no such folder, so no run"):
        load_run(tmp_path / "gone", CPU)


def test_a_folder_that_is_no_run(tmp_path):
    with pytest.raises(RunError, match=f"{tmp_path} is no run: it has no config.json"):
        load_run(tmp_path, CPU)


def test_a_prepared_folder_is_told_apart(tmp_path):
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(RunError, match=f"{tmp_path} is a prepared folder"):
        load_run(tmp_path, CPU)


def test_a_newer_format_is_refused(tiny_run):
    change(tiny_run, format=FORMAT + 1)
    with pytest.raises(RunError, match=f"has format {FORMAT + 1}, newer than {FORMAT}"):
        load_run(tiny_run, CPU)


@pytest.mark.parametrize("number", [None, "1"])
def test_a_file_without_a_format_number(tiny_run, number):
    change(tiny_run, format=number)
    with pytest.raises(RunError, match=r"config\.json: no format number"):
        load_run(tiny_run, CPU)


def test_json_that_is_none(tiny_run):
    (tiny_run / "config.json").write_text('{"format": 1')
    with pytest.raises(RunError, match=r"config\.json: not valid JSON"):
        load_run(tiny_run, CPU)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"model": {"cell": "lsmt"}}, "'lsmt'"),
        ({"model": None}, "damaged"),
        ({"data": {}}, "source_size"),
    ],
)
def test_damaged_options(tiny_run, values, words):
    change(tiny_run, **values)
    with pytest.raises(RunError, match=words):
        load_run(tiny_run, CPU)


def test_a_run_without_a_checkpoint(tiny_run):
    (tiny_run / "checkpoints" / "best.safetensors").unlink()
    with pytest.raises(RunError, match=f"{tiny_run} has no checkpoint yet"):
        load_run(tiny_run, CPU)


def test_a_truncated_checkpoint_names_file_and_remedy(tiny_run):
    path = tiny_run / "checkpoints" / "best.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(RunError, match=r"best\.safetensors is truncated or damaged .*; put the"):
        load_run(tiny_run, CPU)
