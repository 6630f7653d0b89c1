"""A tiny corpus, letters to capital letters, and trainings on it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from nmtflex.config import DeviceConfig, GlobalConfig, ModelConfig, PreprocessConfig, TrainConfig
from nmtflex.corpus.prepare import prepare
from nmtflex.corpus.store import PreparedCorpus
from nmtflex.training.display import Display
from nmtflex.training.loop import Trainer
from nmtflex.training.metrics import Metrics
from nmtflex.training.start import open_training

CPU = DeviceConfig(device="cpu", threads=1)
EXACT = DeviceConfig(device="cpu", threads=1, dtype="float64")
SIZES = {"embedding_size": 5, "encoder_size": 4, "decoder_size": 6}
PAIRS = ["a", "b a", "c d e", "e d c b", "a c", "d", "b b e a c", "c a", "d e", "e a b"]
LENGTHS = (3, 5, 2, 7, 4, 6, 1, 8)  # tokens of the pairs of the fixture ``batches``
VALID = ["a b", "c d e a", "e"]


def make_corpus(
    folder: Path,
    train: Sequence[str] | None = PAIRS,
    valid: Sequence[str] | None = VALID,
    targets: Sequence[str] | None = None,
    **options: Any,
) -> PreparedCorpus:
    """Prepare a corpus in ``folder / "prepared"``; targets are sources in capitals by default."""
    for split, sources in {"train": train, "valid": valid}.items():
        if sources is None:
            continue
        split_targets = targets or [line.upper() for line in sources]
        for language, lines in {"lo": sources, "up": split_targets}.items():
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"{split}.{language}").write_text(text)
    splits: dict[str, Any] = {} if train is None else {"train": [folder / "train"]}
    splits |= {} if valid is None else {"valid": folder / "valid"}
    place = {"source_lang": "lo", "target_lang": "up", "out": folder / "prepared"}
    return prepare(PreprocessConfig(**place, **splits, **options))


def small_model(**options: Any) -> ModelConfig:
    return ModelConfig.from_flat(**{
        "attention": GlobalConfig(),
        "dropout": 0.0,
        **SIZES,
        **options,
    })


def begin(
    data: Path, run: Path, device: DeviceConfig = EXACT, model: ModelConfig | None = None, **options
) -> Trainer:
    """Open a training of batches of three pairs, if nothing else is asked for."""
    if "batch_tokens" not in options:
        options = {"batch_sentences": 3, **options}
    loop = TrainConfig(data=data, run=run, **{"valid_beam": 1, "log_every": 1, **options})
    return open_training(model or small_model(), loop, device)


def finish(trainer: Trainer) -> None:
    """Train to the end."""
    progress = trainer.progress
    display = Display(Console(quiet=True, force_terminal=False), trainer.total_updates(), 0)
    with Metrics(trainer.folder, progress.metric_rows, progress.update) as metrics:
        trainer.train(display, metrics)


def config_of(run: Path) -> dict[str, Any]:
    return json.loads((run / "config.json").read_text())
