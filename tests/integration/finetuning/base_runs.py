"""Letters to capitals backwards: what the tests of finetuning share."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

from safetensors.torch import load_file

from nmtflex.cli.app import main
from nmtflex.config import DeviceConfig

MODEL = ["--embedding-size", 8, "--encoder-size", 8, "--decoder-size", 8]


PLACE = ["--threads", 1, "--device", "cpu"]


LOOP = ["--valid-beam", 2, "--log-every", 1, *PLACE]


CPU = DeviceConfig(device="cpu", threads=1)


BEST = Path("checkpoints") / "best.safetensors"


def write_corpus(prefix: Path, pairs: int, seed: int, letters: str, longest: int = 9) -> Path:
    """Letters to capital letters, backwards."""
    draw = random.Random(seed)
    lines = [draw.choices(letters, k=draw.randint(1, longest)) for _ in range(pairs)]
    texts = {"lo": lines, "up": [[letter.upper() for letter in line[::-1]] for line in lines]}
    for language, words in texts.items():
        text = "".join(" ".join(line) + "\n" for line in words)
        prefix.with_name(f"{prefix.name}.{language}").write_text(text)
    return prefix


def call(*arguments: object) -> None:
    assert main([str(argument) for argument in arguments]) == 0


def preprocess(folder: Path, *options: object, valid: bool = True) -> Path:
    splits = ["--train", folder / "train", *(["--valid", folder / "valid"] if valid else [])]
    languages = ["--source-lang", "lo", "--target-lang", "up"]
    out = folder / ("prepared" if valid else "without-valid")
    call("preprocess", *splits, *languages, *options, "--out", out)
    return out


class Bases:
    """Trained runs, and prepared corpora: their own and two others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = self._corpus("base", 160, 1, "abcdef")
        self.flexible = self._train("flexible", "--batch-sentences", 16)
        self.plain = self._train("global", "--batch-tokens", 120)
        self.memory = self._train("memory", "--K", 3, "--batch-sentences", 16)
        self.other = self._corpus("other", 90, 20, "fedc", 14, "--like", self.flexible)
        self.strange = self._corpus("strange", 60, 30, "uvwxyz")
        self.unjudged = preprocess(folder / "other", "--like", self.data, valid=False)

    def _corpus(self, name: str, pairs: int, seed: int, letters: str, longest=9, *options) -> Path:
        (self.folder / name).mkdir()
        for split, count in {"train": pairs, "valid": 12}.items():
            write_corpus(self.folder / name / split, count, seed + count, letters, longest)
        return preprocess(self.folder / name, *options)

    def _train(self, kind: str, *options: object) -> Path:
        run = self.folder / kind
        chosen = ["--attention", kind, *options, "--epochs", 2, "--halve-from", 2, "--lr", 0.004]
        call("train", self.data, "--run", run, *MODEL, *LOOP, *chosen)
        return run


def rows(run: Path, split: str) -> list[dict[str, str]]:
    with (run / "metrics.csv").open(newline="") as file:
        found = [row for row in csv.DictReader(file) if row["split"] == split]
    return [{k: v for k, v in row.items() if k != "seconds"} for row in found]


def numbers(run: Path, column: str) -> list[float]:
    return [float(row[column]) for row in rows(run, "valid")]


def tensors(path: Path) -> dict[str, list]:
    return {name: tensor.tolist() for name, tensor in load_file(path).items()}


def last_checkpoint(run: Path) -> Path:
    return max((run / "checkpoints").glob("update-*"))


def weights(run: Path) -> dict[str, list]:
    return tensors(last_checkpoint(run) / "weights.safetensors")


def options_of(run: Path) -> dict[str, object]:
    return json.loads((run / "config.json").read_text())["train"]


def data_of(run: Path) -> dict[str, object]:
    return json.loads((run / "config.json").read_text())["data"]


def mean_length(prepared: Path) -> float:
    lines = (prepared.parent / "valid.lo").read_text().splitlines()
    return sum(len(line.split()) for line in lines) / len(lines)


def longest_source(prepared: Path) -> int:
    lines = (prepared.parent / "train.lo").read_text().splitlines()
    return max(len(line.split()) for line in lines)
