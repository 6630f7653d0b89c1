"""The facts of a run, from its folder only: no model is built and no weight is read."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nmtflex.config import Config, DeviceConfig, FinetuneConfig, ModelConfig, TrainConfig
from nmtflex.config.words import given_words
from nmtflex.errors import RunError
from nmtflex.files import read_json
from nmtflex.runs.commands import read_commands
from nmtflex.runs.folder import RunFolder, read_run_config, update_of
from nmtflex.runs.metrics import read_metrics
from nmtflex.runs.rounding import SCALE
from nmtflex.runs.weights import best_update, open_tensors
from nmtflex.text.pipeline import DESCRIPTION
from nmtflex.text.subwords import name_subwords
from nmtflex.training.checkpoint import read_progress
from nmtflex.training.made_by import maker_of


def describe_run(path: Path) -> dict[str, Any]:
    """Return the facts of a run, in plain JSON types.

    Raises:
        RunError: The folder is not a run, or one of its files is damaged.
    """
    folder = RunFolder(path)
    config = read_run_config(folder)
    names = "nmtflex", "torch", "python"
    return {
        "run": str(path),
        "made_by": {name: config[name] for name in names if isinstance(config.get(name), str)},
        "data": _data(config),
        "languages": _languages(folder),
        "options": options_line(path, config),
        "parameters": count_parameters(folder),
        "bytes": _bytes(folder),
        "progress": _progress(folder),
        "best": _best(folder),
        "files": sorted(item.name for item in path.iterdir() if not item.name.startswith(".")),
        "commands": [command._asdict() for command in read_commands(folder)],
    }


def options_line(path: Path, config: Mapping[str, Any]) -> str:
    """Return a command line for a run's ``config.json``, without options at their defaults."""
    average, export = config.get("average"), config.get("export")
    train = config.get("train", {})
    if isinstance(export, dict):
        words = ["export", str(export.get("base_run")), "--run", str(path)]
        return shlex.join(["nmtflex", *words, "--weights", str(export.get("weights"))])
    if isinstance(average, dict):
        words = ["average", str(average.get("base_run")), "--run", str(path)]
        return shlex.join(["nmtflex", *words, "--last", str(len(average.get("updates", ())))])
    finetuned = maker_of(config) == "finetune"
    group: type[Config] = FinetuneConfig if finetuned else TrainConfig
    argument = "base_run" if finetuned else "data"
    words = ["finetune" if finetuned else "train", str(train.get(argument)), "--run", str(path)]
    others = {name: value for name, value in train.items() if name != "run"}
    if not finetuned:  # otherwise the model is the base run's
        words += given_words(ModelConfig, config["model"])
    words += given_words(group, others)
    return shlex.join(["nmtflex", *words, *given_words(DeviceConfig, config.get("device", {}))])


def _data(config: Mapping[str, Any]) -> dict[str, Any]:
    folder = config.get("train", {}).get("data")
    there = isinstance(folder, str) and Path(folder).is_dir()
    return {"folder": folder, "there": there, **config["data"]}


def _languages(folder: RunFolder) -> dict[str, Any]:
    """Return language, tokenizer, subwords and vocabulary of each side."""
    described = read_json(folder.pipeline / DESCRIPTION, RunError)
    found = {}
    for side in ("source", "target"):
        try:
            own = described[side]
            found[side] = {
                "language": str(own["language"]),
                "tokenizer": str(own["tokenizer"]["name"]),
                "subwords": name_subwords(own),
                "vocabulary": int(own["vocabulary"]),
            }
        except (KeyError, TypeError, ValueError) as error:
            raise RunError(f"{folder.pipeline / DESCRIPTION}: damaged: {error!r}") from error
    return found


def _weights_file(folder: RunFolder) -> Path | None:
    """Return the best weights, or those of the last checkpoint; None if there are none yet."""
    files = [path / "weights.safetensors" for path in reversed(folder.updates())]
    return next((path for path in (folder.best, *files) if path.is_file()), None)


def count_parameters(folder: RunFolder) -> dict[str, int] | None:
    """Return the number of weights of each part of the model, from the file's header."""
    path = _weights_file(folder)
    if path is None:
        return None
    parts: dict[str, int] = {}
    with open_tensors(path) as file:
        for name in file.keys():  # noqa: SIM118
            if name.endswith(SCALE):
                continue
            size = math.prod(file.get_slice(name).get_shape())
            parts[part_of(name)] = parts.get(part_of(name), 0) + size
    return {"all": sum(parts.values()), **dict(sorted(parts.items()))}


def part_of(weight: str) -> str:
    """Return the part of the model that a weight belongs to."""
    if "embedding.weight" in weight:
        return "embeddings"
    side, _, inside = weight.partition(".")
    if side != "decoder":
        return side
    names = inside.split(".")
    if "attention" in names:
        return "attention"
    if "feed_forward" in names:
        return "decoder feed-forward"
    if "mixer" in names:
        return f"decoder {'self-attention' if {'inputs', 'output'} & set(names) else 'SSRU'}"
    return side


def _bytes(folder: RunFolder) -> dict[str, int]:
    """Return the bytes on disk: in total, and of each file and folder of the run."""
    found = {}
    for item in sorted(folder.path.iterdir()):
        inside = item.rglob("*") if item.is_dir() and not item.is_symlink() else [item]
        found[item.name] = sum(path.lstat().st_size for path in inside if path.is_file())
    shown = {name: size for name, size in found.items() if size}
    return {"all": sum(shown.values()), **shown}


def _progress(folder: RunFolder) -> dict[str, Any] | None:
    """Return the training progress at the last checkpoint; None without one."""
    checkpoints = folder.updates()
    if not checkpoints:
        return None
    progress = read_progress(checkpoints[-1])
    names = "update", "epoch", "seconds", "validation_seconds", "target_tokens"
    kept = [update_of(path) for path in checkpoints]
    return {name: progress.get(name) for name in names} | {"checkpoints": kept}


def _best(folder: RunFolder) -> dict[str, Any] | None:
    """Return the update of the best weights, and the scores of its validation."""
    if not folder.best.is_file():
        return None
    update = best_update(folder)
    found: dict[str, Any] = {"update": update}
    rows = read_metrics(folder) if folder.metrics.is_file() else []
    for row in rows:
        if row.split == "valid" and row.update == update:
            found |= {
                name: row.values[name] for name in ("bleu", "perplexity") if name in row.values
            }
    return found
