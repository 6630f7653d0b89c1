"""The ``config.json`` of a run: its effective options, its data and the versions."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any, NamedTuple

import nmtflex
from nmtflex.config import RUN_FORMAT, DeviceConfig, LoopConfig, ModelConfig
from nmtflex.corpus.store import PreparedCorpus
from nmtflex.files import file_hash
from nmtflex.runs.opening import Run


class Options(NamedTuple):
    """All options of a training, named as the sections of ``config.json``."""

    model: ModelConfig
    train: LoopConfig
    device: DeviceConfig


def describe(
    corpus: PreparedCorpus,
    options: Options,
    data: dict[str, Any],
    base: Run | None,
    processes: int,
) -> dict[str, Any]:
    """Return the ``config.json`` of a training.

    Args:
        corpus: The training data.
        options: With a number for ``--batch-tokens auto``.
        data: From ``describe_data``.
        base: Run whose best weights it starts from.
        processes: How many share it.
    """
    origin = {"base": file_hash(base.folder.best)} if base else {}  # even if it is moved
    return {
        "format": RUN_FORMAT,
        "nmtflex": nmtflex.__version__,
        "python": platform.python_version(),
        "torch": version("torch"),
        "model": options.model.to_dict(),
        "train": options.train.to_dict() | {"data": str(corpus.folder.resolve())},
        "device": options.device.to_dict(),
        "data": data,
        **origin,
        "processes": processes,
    }


def describe_data(corpus: PreparedCorpus, base: Run | None) -> dict[str, Any]:
    """Return the section ``data``: lengths in tokens, sizes of vocabularies in entries."""
    longest = int(corpus.store("train", "source").lengths.max())
    if base is not None:
        before = base.config["data"]["longest_source"]
        # The position encodings of memory attention stay those that its weights were trained with.
        fixed = getattr(base.model_config.attention, "position_encoding", False)
        longest = before if fixed else max(before, longest)
    mean = None
    if "valid" in corpus.splits and (lengths := corpus.store("valid", "source").lengths).any():
        mean = float(lengths[lengths > 0].mean())  # an empty source is not translated
    return {
        "fingerprint": corpus.fingerprint,
        "source_size": len(corpus.pipeline.source.vocabulary),
        "target_size": len(corpus.pipeline.target.vocabulary),
        "longest_source": longest,
        "mean_valid_source": mean,
    }
