"""Letters to capitals backwards: what the tests of training share."""

from __future__ import annotations

import csv
import random
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

from nmtflex.config import PreprocessConfig
from nmtflex.corpus.prepare import prepare

BEST = Path("checkpoints") / "best.safetensors"


SMALL = [
    "--embedding-size",
    "8",
    "--encoder-size",
    "8",
    "--decoder-size",
    "8",
    "--batch-sentences",
    "16",
    "--valid-beam",
    "2",
    "--log-every",
    "1",
    "--threads",
    "1",
    "--device",
    "cpu",
]


def write_corpus(folder: Path, pairs: int, seed: int) -> Path:
    """Letters to capital letters, backwards."""
    draw = random.Random(seed)
    lines = ["".join(draw.choices("abcdef", k=draw.randint(1, 7))) for _ in range(pairs)]
    for lang, texts in {"lo": lines, "up": [line[::-1].upper() for line in lines]}.items():
        text = "".join(" ".join(line) + "\n" for line in texts)
        folder.with_name(f"{folder.name}.{lang}").write_text(text)
    return folder


def make_prepared(base: Path, seed: int, **options: object) -> Path:
    splits = {"train": [write_corpus(base / "train", 200, seed)]}
    splits |= {"valid": write_corpus(base / "valid", 20, seed + 1)}
    config = PreprocessConfig(
        out=base / "prepared", source_lang="lo", target_lang="up", **splits | options
    )
    prepare(config)
    return config.out


def tensors(path: Path) -> dict[str, list]:
    return {name: tensor.tolist() for name, tensor in load_file(path).items()}


def weights(run: Path) -> dict[str, list]:
    return tensors(max_checkpoint(run) / "weights.safetensors")


def rows(run: Path, split: str) -> list[dict[str, str]]:
    with (run / "metrics.csv").open(newline="") as file:
        found = [row for row in csv.DictReader(file) if row["split"] == split]
    return [{k: v for k, v in row.items() if k != "seconds"} for row in found]


def wait_for_rows(path: Path, count: int) -> None:
    deadline = time.monotonic() + 600  # a machine may be busy
    while time.monotonic() < deadline:
        if path.exists() and path.read_text().count("\n") > count:
            return
        time.sleep(0.05)
    pytest.fail(f"{path} has no {count} rows after ten minutes")


def max_checkpoint(run: Path) -> Path:
    return max((run / "checkpoints").glob("update-*"))
