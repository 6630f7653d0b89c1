"""Opening a run folder, and the folders that are none."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from nmtflex.config import (
    RUN_FORMAT,
    DeviceConfig,
    GlobalConfig,
)
from nmtflex.errors import RunError
from nmtflex.runs.folder import RunFolder
from nmtflex.runs.opening import load_run
from nmtflex.runs.weights import load_tensors, save_tensors
from nmtflex.text.vocabulary import Vocabulary

CPU = DeviceConfig(device="cpu", threads=1)
DATA = {"source_size": 12, "target_size": 12, "longest_source": 10, "mean_valid_source": 4.0}


def change(run: Path, **values: object) -> None:
    path = run / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def change_model(path: Path, name: str, value: object) -> None:
    """Change an option of the model, wherever it stands in its tables."""
    model = json.loads((path / "config.json").read_text())["model"]
    for table in (model, model["encoder"], model["decoder"]):
        if name in table:
            table[name] = value
    change(path, model=model)


def test_opens_ready_to_translate(tiny_run):
    run = load_run(tiny_run, CPU)
    assert run.update == 1
    assert not run.model.training
    assert run.model.target_size == 12
    assert run.pipeline.source.encode("a b") == [4, 5]


@pytest.mark.parametrize("layered", [False, True])
def test_opening_draws_no_weights(make_tiny_run, make_layered_run, layered):
    run = (make_layered_run if layered else make_tiny_run)("run", GlobalConfig())
    state = torch.get_rng_state()
    load_run(run, CPU)
    assert torch.equal(torch.get_rng_state(), state)


def test_float64_is_what_is_asked_for(tiny_run):
    run = load_run(tiny_run, DeviceConfig(device="cpu", threads=1, dtype="float64"))
    assert run.model.target_embedding.weight.dtype == torch.float64


def test_a_moved_run_is_the_same_run(tiny_run, tmp_path):
    moved = tmp_path / "elsewhere" / "run"
    shutil.copytree(tiny_run, moved)
    shutil.rmtree(tiny_run)
    assert load_run(moved, CPU).folder.path == moved


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(RunError, match=r"gone: no such run folder"):
        load_run(tmp_path / "gone", CPU)


def test_a_file_is_no_run(tmp_path):
    (tmp_path / "test.en").touch()
    with pytest.raises(RunError) as caught:
        load_run(tmp_path / "test.en", CPU)
    message = f"{tmp_path / 'test.en'} is a file; give the folder that nmtflex train --run made"
    assert str(caught.value) == message


def test_a_folder_that_is_no_run(tmp_path):
    with pytest.raises(RunError, match=f"{tmp_path} is not a run: it has no config.json"):
        load_run(tmp_path, CPU)


def test_a_prepared_folder_is_told_apart(tmp_path):
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(RunError, match=f"{tmp_path} is a prepared folder"):
        load_run(tmp_path, CPU)


def test_a_newer_format_is_refused(tiny_run):
    change(tiny_run, format=RUN_FORMAT + 1)
    with pytest.raises(RunError, match=f"has format {RUN_FORMAT + 1}, newer than {RUN_FORMAT}"):
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
        ({"model": {"encoder": {"kind": "recurrent", "cell": "lsmt"}}}, "'lsmt'"),
        ({"model": None}, "damaged"),
        ({"data": {}}, "source_size"),
        ({"data": []}, "damaged"),
        ({"data": {"source_size": "12"}}, "'source_size' is '12', not a number of at least 4"),
        ({"data": DATA | {"target_size": 3}}, "'target_size' is 3"),
        ({"data": DATA | {"longest_source": 10**10}}, "'longest_source' is 10000000000, not"),
        ({"data": DATA | {"mean_valid_source": "4"}}, "'mean_valid_source' is '4', not"),
        ({"data": DATA | {"target_size": 13}}, "vocabularies of 12 and 12 .* says 12 and 13"),
        ({"train": 5}, "'train' is 5, not an object"),
    ],
)
def test_damaged_options(tiny_run, values, words):
    change(tiny_run, **values)
    with pytest.raises(RunError, match=words):
        load_run(tiny_run, CPU)


@pytest.mark.parametrize(
    ("size", "value"),
    [
        ("embedding_size", 10**8),
        ("encoder_size", 10**8),
        ("decoder_size", 10**8),
        ("attention_size", 10**8),
        ("bottleneck", 10**8),
        ("encoder_layers", 1000),
        ("decoder_layers", 1000),
        ("attention", {"kind": "memory", "K": 10**8}),
    ],
)
def test_a_model_of_more_weights_than_the_file_has_is_not_built(tiny_run, size, value):
    change_model(tiny_run, size, value)
    with pytest.raises(
        RunError,
        match=r"best\.safetensors: weight [a-z_.0-9]+ has shape .*weights.safe",
    ):
        load_run(tiny_run, CPU)


@pytest.mark.parametrize("size", ["encoder_size", "decoder_layers"])
def test_a_model_whose_weights_cannot_be_counted(tiny_run, size):
    change_model(tiny_run, size, 10**12)
    with pytest.raises(RunError, match=r"config\.json: .*, not 1000000000000"):
        load_run(tiny_run, CPU)


def test_one_embedding_for_two_vocabularies(tiny_run):
    Vocabulary(list("ABC"), [1] * 3).save(tiny_run / "pipeline" / "target.vocabulary")
    path = tiny_run / "pipeline" / "pipeline.json"
    about = json.loads(path.read_text())
    about["target"]["vocabulary"] = 7
    path.write_text(json.dumps(about))
    model = json.loads((tiny_run / "config.json").read_text())["model"]
    model |= {"tie_embeddings": "all", "bottleneck": 6}
    change(tiny_run, model=model, data=DATA | {"target_size": 7})
    with pytest.raises(RunError, match=r"config\.json: damaged: one embedding for vocabularies of"):
        load_run(tiny_run, CPU)


def test_an_update_that_is_no_number(tiny_run):
    path = tiny_run / "checkpoints" / "best.safetensors"
    tensors, _ = load_tensors(path)
    save_tensors(path, tensors, {"update": "-1"})
    with pytest.raises(RunError, match=r"best\.safetensors: update is '-1', not a number"):
        load_run(tiny_run, CPU)


def test_weights_that_are_no_real_numbers(tiny_run):
    path = tiny_run / "checkpoints" / "best.safetensors"
    tensors, about = load_tensors(path)
    name = min(tensors)
    save_tensors(path, tensors | {name: tensors[name].int()}, about)
    with pytest.raises(RunError, match=rf"weight {name} is I32, not a real number"):
        load_run(tiny_run, CPU)


def test_only_checkpoints_count_as_such(tmp_path):
    for name in ("update-00000010", "update-100000000", "update-00000002", "update-", "update-x"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    assert [path.name for path in RunFolder(tmp_path).updates()] == [
        "update-00000002", "update-00000010", "update-100000000",
    ]  # fmt: skip


def test_a_run_without_a_checkpoint(tiny_run):
    (tiny_run / "checkpoints" / "best.safetensors").unlink()
    with pytest.raises(RunError, match=f"{tiny_run} has no checkpoint yet"):
        load_run(tiny_run, CPU)


def test_a_truncated_checkpoint_names_file_and_remedy(tiny_run):
    path = tiny_run / "checkpoints" / "best.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    with pytest.raises(RunError, match=r"best\.safetensors is truncated or damaged .*weights"):
        load_run(tiny_run, CPU)
    path.write_bytes(whole[:100])
    with pytest.raises(RunError, match=r"best\.safetensors is truncated or damaged .*weights"):
        load_run(tiny_run, CPU)


def test_best_weights_that_are_gone_can_be_replaced_as_the_message_says(tiny_run):
    run = tiny_run.rename(tiny_run.with_name("a run"))
    folder = RunFolder(run)
    folder.best.rename(run / "best")
    with pytest.raises(RunError, match="no checkpoint yet"):
        load_run(run)
    for update in (7, 12):
        checkpoint = folder.checkpoints / f"update-{update:08d}"
        checkpoint.mkdir()
        shutil.copy(run / "best", checkpoint / "weights.safetensors")
    with pytest.raises(RunError) as raised:
        load_run(run)
    message = str(raised.value)
    assert str(folder.best) in message
    assert "update 12" in message
    subprocess.run(message.rpartition(": ")[2], shell=True, check=True)
    load_run(run)
