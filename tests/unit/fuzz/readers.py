"""Small real files, and the readers that damaged ones of them are given to."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from mutations import Damage, Edit, damage, damage_json, damage_safetensors, damage_toml

from nmtflex.cli.app import main
from nmtflex.config import DeviceConfig, FinetuneConfig
from nmtflex.corpus.store import TokenStore, open_prepared
from nmtflex.decoding.confidence import Confidence, read_confidence
from nmtflex.decoding.logistic import Logistic
from nmtflex.decoding.word_features import feature_names
from nmtflex.errors import NmtflexError
from nmtflex.figures.tradeoff import read_points, table_facts
from nmtflex.runs.folder import RunFolder
from nmtflex.runs.limits import threshold_value
from nmtflex.runs.metrics import read_metrics
from nmtflex.runs.opening import load_run
from nmtflex.text.pipeline import TextPipeline
from nmtflex.text.subwords.bpe import BPE
from nmtflex.text.tokenizers.kytea_model import check_model, read_model
from nmtflex.text.vocabulary import Vocabulary
from nmtflex.training.checkpoint import last_rate, load_checkpoint
from nmtflex.training.finetune import effective
from nmtflex.training.optimizers.adam import Adam

SECONDS = 10  # of the processor, for a reader and a small file
MEMORY = 1 << 30  # bytes that it may take
CPU = DeviceConfig(device="cpu", threads=1)
TINY_KYTEA = Path(__file__).parents[2] / "fixtures/tiny.kytea"
TOML = b"""\
epochs = 20
lr = 0.001
validate-every = "30m"
dropout = 0.4
seed = 3
input-feeding = true
best-by = "bleu"

[attention]
kind = "global"
score = "general"
"""
SWEEP = b"""\
tau,bleu,ribes,cps,seconds,sentences,run,split,beam
0.5,30.1,0.7,3.2,1.5,500,"a, b",valid,5
inf,30.4,,9.1,2.5,500,"a, b",valid,5
"""


def make_files(folder: Path) -> None:
    """Write a prepared folder ``prepared`` and a run ``run``, and what else readers read."""
    draw = random.Random(1)
    splits: list[Any] = []
    for split, pairs in (("train", 30), ("valid", 4), ("test", 4)):
        lines = [
            " ".join(draw.choices(["ab", "cab", "b"], k=draw.randint(1, 5))) for _ in range(pairs)
        ]
        (folder / f"{split}.lo").write_text("".join(f"{line}\n" for line in lines))
        (folder / f"{split}.up").write_text("".join(f"{line.upper()}.\n" for line in lines))
        splits += [f"--{split}", folder / split]
    _call(
        "preprocess", "--source-lang", "lo", "--target-lang", "up", *splits, "--bpe", 4,
        "--target-tokenizer", "moses", "--source-normalize", "nfkc", "--out", folder / "prepared",
    )  # fmt: skip
    _call(
        "train", folder / "prepared", "--run", folder / "run", "--attention", "flexible",
        "--embedding-size", 3, "--encoder-size", 2, "--decoder-size", 4, "--batch-sentences", 10,
        "--updates", 2, "--valid-beam", 1, "--log-every", 1, "--threads", 1, "--device", "cpu",
    )  # fmt: skip
    count = len(feature_names(attending=True))
    model = Logistic(0.5, np.ones(count), np.zeros(count), np.ones(count))
    about = {"split": "valid", "beam": 5, "auc": 0.8}
    Confidence(model, 0.3, ["ab"], about).save(folder / "run/confidence.json")
    (folder / "sweep.csv").write_bytes(SWEEP)
    (folder / "options.toml").write_bytes(TOML)
    (folder / "model.kytea").write_bytes(TINY_KYTEA.read_bytes())


def _call(*arguments: object) -> None:
    if code := main([str(argument) for argument in arguments]):
        raise RuntimeError(f"{arguments} ended with {code}")


def read_prepared(folder: Path) -> None:
    corpus = open_prepared(folder / "prepared")
    _ = corpus.fingerprint, corpus.pipeline
    for split in corpus.splits:
        for side in ("source", "target"):
            store = corpus.store(split, side)  # type: ignore[arg-type]
            _ = store.lengths, [store[index] for index in range(len(store))]
            if split != "train":
                corpus.raw(split, side)  # type: ignore[arg-type]


def read_store(folder: Path) -> None:
    store = TokenStore(folder / "prepared" / "train.source", "<u2", 12)
    with contextlib.suppress(NmtflexError):
        _ = store.lengths
    for index in range(len(store)):
        store[index].tolist()


def read_codes(folder: Path) -> None:
    bpe = BPE.load(folder / "run" / "pipeline" / "source.codes")
    bpe.join(bpe.split("cabcab"))


def read_pipeline(folder: Path) -> None:
    pipeline = TextPipeline.load(folder / "run" / "pipeline")
    for side in (pipeline.source, pipeline.target):
        side.decode(side.encode("ab cab."))
        side.describe()


def read_run(folder: Path) -> None:
    run = load_run(folder / "run", CPU)
    threshold_value("auto", run.config["data"])
    effective(FinetuneConfig(base_run=folder / "run", run=folder / "new"), run)


def read_checkpoint(folder: Path) -> None:
    run = RunFolder(folder / "run")
    with contextlib.suppress(NmtflexError):
        last_rate(run)
    model = load_run(folder / "run", CPU).model
    optimizer = Adam(model.parameters())
    load_checkpoint(run.updates()[-1], model, optimizer)
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    optimizer.step()


def read_options(folder: Path) -> None:
    """Give a --config file to a command, which then finds no prepared folder."""
    options = ["--run", folder / "none", "--config", folder / "options.toml"]
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stderr(nowhere):
        code = main(list(map(str, ["train", folder / "none", *options])))
    if code not in (1, 2):
        raise RuntimeError(f"exit code {code}")


def read_kytea(folder: Path) -> None:
    path = folder / "model.kytea"
    check_model(read_model(path), path)


def read_sweep(folder: Path) -> None:
    read_points(folder / "sweep.csv")
    table_facts(folder / "sweep.csv", "")


def read_scores(folder: Path) -> None:
    read_confidence([folder / "run"], ["ab"], folder / "run/confidence.json")


class Target(NamedTuple):
    """A file, what is done to it, and what reads it."""

    file: str
    damage: Damage
    read: Callable[[Path], None]
    examples: int  # in the short form


_CHECKPOINT = "run/checkpoints/update-00000002"
TARGETS = {
    "manifest": Target("prepared/manifest.json", damage_json, read_prepared, 100),
    "tokens": Target("prepared/train.source.bin", damage, read_store, 100),
    "offsets": Target("prepared/train.source.offsets", damage, read_store, 100),
    "vocabulary": Target(
        "run/pipeline/source.vocabulary",
        damage,
        lambda folder: Vocabulary.load(folder / "run/pipeline/source.vocabulary") and None,
        100,
    ),
    "codes": Target("run/pipeline/source.codes", damage, read_codes, 100),
    "pipeline": Target("run/pipeline/pipeline.json", damage_json, read_pipeline, 100),
    "config": Target("run/config.json", damage_json, read_run, 100),
    "best": Target("run/checkpoints/best.safetensors", damage_safetensors, read_run, 100),
    "trainer": Target(
        f"{_CHECKPOINT}/trainer.safetensors", damage_safetensors, read_checkpoint, 60
    ),
    "progress": Target(f"{_CHECKPOINT}/progress.json", damage_json, read_checkpoint, 60),
    "metrics": Target(
        "run/metrics.csv",
        damage,
        lambda folder: read_metrics(RunFolder(folder / "run")) and None,
        100,
    ),
    "confidence": Target("run/confidence.json", damage_json, read_scores, 100),
    "sweep": Target("sweep.csv", damage, read_sweep, 100),
    "options": Target("options.toml", damage_toml, read_options, 40),
    "kytea": Target("model.kytea", damage, read_kytea, 30),
}


class Hang(BaseException):
    """A reader took too long; no reader catches it."""


@contextlib.contextmanager
def bounded(seconds: int = SECONDS, memory: int = MEMORY) -> Iterator[None]:
    """Bound the time, and the memory beyond what the process has now."""

    def stop(*_: object) -> None:
        raise Hang(f"longer than {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    statm = Path("/proc/self/statm")
    limits = None
    if statm.exists():
        import resource

        limits = resource.getrlimit(resource.RLIMIT_AS)
        now = int(statm.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + memory, limits[1]))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        if limits is not None:
            resource.setrlimit(resource.RLIMIT_AS, limits)


def try_target(target: Target, folder: Path, changes: Sequence[Edit]) -> None:
    """Damage a file, read it, and put it back; anything but a NmtflexError comes out."""
    path = folder / target.file
    whole = path.read_bytes()
    path.write_bytes(target.damage(whole, changes))
    try:
        with bounded(), contextlib.suppress(NmtflexError):
            target.read(folder)
    finally:
        path.write_bytes(whole)
