"""What changed since a run was made is told as a command line would spell it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nmtflex.config import (
    Config,
    DeviceConfig,
    FinetuneConfig,
    FlexibleConfig,
    MemoryConfig,
    ModelConfig,
    TrainConfig,
)
from nmtflex.errors import OptionError, RunError
from nmtflex.runs.folder import RunFolder
from nmtflex.training.describe import Options
from nmtflex.training.same_options import check_same

FOLDERS = {"data": Path("d"), "run": Path("r")}


def model(**values: Any) -> ModelConfig:
    return ModelConfig.from_flat(decoder="luong", **values)


def train(**values: Any) -> TrainConfig:
    return TrainConfig(**FOLDERS, **values)


def finetune(**values: Any) -> FinetuneConfig:
    return FinetuneConfig(base_run=Path("b"), **FOLDERS, **values)


def run(*groups: Config, **others: Any) -> dict[str, Any]:
    """Return a ``config.json`` whose options differ from the defaults by these groups."""
    found = {"model": model(), "train": train(), "device": DeviceConfig()}
    for group in groups:
        key = "model" if isinstance(group, ModelConfig) else "train"
        found[key if not isinstance(group, DeviceConfig) else "device"] = group
    return {
        **{key: group.to_dict() for key, group in found.items()},
        "data": {"fingerprint": "f"},
        "options": Options(**found),
        **others,
    }


def complaint(before: dict[str, Any], now: dict[str, Any]) -> str:
    with pytest.raises(OptionError) as caught:
        check_same(RunFolder(Path("r")), before, now, now["options"])
    return str(caught.value)


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [
        (train(lr=0.5), train(), "--lr was 0.5, not 0.001"),
        (train(batch_tokens=20), train(), "--batch-tokens was 20, now not given"),
        (train(), train(batch_tokens=30), "--batch-tokens was not given, now 30"),
        (train(), train(seed=2, epochs=3), "--seed was 1, not 2"),
        (
            model(attention=MemoryConfig(K=8, position_encoding=False)),
            model(attention=FlexibleConfig()),
            "--attention was memory --K 8 --no-position-encoding, not flexible",
        ),
        (
            model(attention=FlexibleConfig(sigma=2.5)),
            model(),
            "--attention was flexible --sigma 2.5, not global",
        ),
        (model(), model(input_feeding=False), "it had --input-feeding, not --no-input-feeding"),
        (DeviceConfig(dtype="bfloat16"), DeviceConfig(), "--dtype was bfloat16, not float32"),
    ],
)
def test_changes(before, now, change):
    assert complaint(run(before), run(now)) == (
        f"r is a run with other options: {change}; leave out what should "
        f"stay unchanged, or give another --run"
    )


@pytest.mark.parametrize(
    ("before", "now", "change"),
    [
        (["encoder.*"], [], "--freeze was 'encoder.*', now not given"),
        ([], ["a", "b"], "--freeze was not given, now a --freeze b"),
        (["a"], ["a", "b"], "--freeze was a, not a --freeze b"),
    ],
)
def test_changes_of_a_list(before, now, change):
    message = complaint(run(finetune(freeze=before), base="1"), run(finetune(freeze=now), base="1"))
    assert f"r is a run with other options: {change}; leave out" in message


@pytest.mark.parametrize(
    "now",
    [
        train(validate_every="20", valid_beam=1, best_by="perplexity", patience=3),
        train(epochs=3, keep=9, save_every=1.0, log_every=2, bad_updates=1),
        DeviceConfig(device="cuda", threads=3),
    ],
)
def test_length_validation_logging_and_place_may_change(now):
    now = run(now)
    check_same(RunFolder(Path("r")), run(), now, now["options"])


def test_all_changes_at_once():
    before = run(train(clip=1.0, halve_from=2), DeviceConfig(dtype="bfloat16"))
    now = run(data={"fingerprint": "g"})
    assert complaint(before, now) == (
        "r is a run with other options: --halve-from was 2, not 0; --clip was 1.0, not 3.0; "
        "--dtype was bfloat16, not float32; the prepared data is not the data it was trained on; "
        "leave out what should stay unchanged, or give another --run"
    )


def test_an_option_younger_than_the_run_had_its_default():
    before, now = run(finetune(), base="1"), run(finetune(), base="1")
    for name in ("freeze", "train_tau", "lr"):
        del before["train"][name]
    del before["model"]["attention"]
    check_same(RunFolder(Path("r")), before, now, now["options"])
    assert "--freeze was not given, now a; " in complaint(
        before, run(finetune(freeze=["a"]), base="1")
    )


@pytest.mark.parametrize("damaged", [{"kind": []}, {"kind": "later", "x": 1}, {}, "x", None, 3])
def test_a_mechanism_that_is_none(damaged):
    before = run()
    before["model"]["attention"] = damaged
    assert "r is a run with other options: --attention was " in complaint(before, run())


def test_another_command():
    assert complaint(run(), run(finetune(), base="1")) == (
        "r was made by nmtflex train; resume it with that, or give another --run"
    )
    assert complaint(run(finetune(), base="1"), run()) == (
        "r was made by nmtflex finetune; resume it with that, or give another --run"
    )


def test_another_base():
    assert complaint(run(finetune(), base="1"), run(finetune(beta=3.0), base="2")) == (
        "r did not start from the present weights of b; give its base run, or another --run"
    )


def test_what_cannot_be_resumed():
    now = run()
    with pytest.raises(RunError) as caught:
        check_same(RunFolder(Path("r")), run(average={}), now, now["options"])
    assert str(caught.value) == (
        "r was made by nmtflex average and has no training to resume; continue from it with "
        "nmtflex finetune, in another --run"
    )
    with pytest.raises(RunError, match=r"^r/config.json: damaged: no 'train' section$"):
        check_same(RunFolder(Path("r")), run(train=[]), now, now["options"])
