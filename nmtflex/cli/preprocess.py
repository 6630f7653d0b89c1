"""``nmtflex preprocess``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmtflex.cli.app import app
from nmtflex.cli.bind import command
from nmtflex.cli.console import note
from nmtflex.cli.stages import Stages, cleaning_up, stages
from nmtflex.config import ConcatConfig, PreprocessConfig
from nmtflex.text.visible import counted


@command(app, "preprocess")
def preprocess(config: PreprocessConfig, concat: ConcatConfig) -> None:
    """Prepare raw parallel text for training."""
    from nmtflex.corpus.prepare import prepare

    with cleaning_up(), stages() as progress:
        corpus = prepare(config, progress, concat)
    for line in _report(config.out, corpus.manifest, progress):
        note(line)


def _report(out: Path, manifest: dict[str, Any], progress: Stages) -> Iterator[str]:
    """Report what was read, kept and dropped, the vocabularies, and the time."""
    from nmtflex.corpus.filters import describe_reasons
    from nmtflex.text.subwords import name_subwords
    from nmtflex.text.tokenizers.moses import remark

    reasons = describe_reasons(**manifest["filter"])
    limit = manifest["options"]["max_pairs"]
    yield from _inputs(manifest["inputs"], limit)
    for name, split in manifest["splits"].items():
        if name == "train":
            yield f"{name}: {_counts(split, reasons, limit)}; {_unknown(split)}"
            yield from _joined(split, manifest["options"])
        else:
            yield f"{name}: {_counts(split)}; {_unknown(split)}"
    pipeline = manifest["pipeline"]
    for side in ("source", "target"):
        if said := remark(pipeline[side]["tokenizer"]):
            yield f"warning: {side}: {said}"
    sides = [
        f"{pipeline[side]['vocabulary']:,} {side}{f' ({model})' if model else ''}"
        for side in ("source", "target")
        for model in [name_subwords(pipeline[side])]
    ]
    yield f"vocabulary{' (joint)' if pipeline['joint'] else ''}: {', '.join(sides)}"
    learning = sum(
        seconds for stage, seconds in progress.seconds.items() if stage.startswith("learning")
    )
    learned = " and ".join(
        stage.removeprefix("learning ") for stage in progress.seconds if "learning" in stage
    )
    if sample := manifest["bpe_sample"]:
        yield f"{learned} learned from {_sample(sample)} in {learning:.1f} seconds"
    pairs = sum(split["read"] for split in manifest["splits"].values())
    speed = pairs / max(progress.total - learning, 1e-9)
    apart = f", excluding {learned} learning" if sample else ""
    yield f"{out}: made in {progress.total:.1f} seconds ({speed:,.0f} pairs per second{apart})"


def _inputs(inputs: dict[str, list[dict[str, Any]]], limit: int) -> Iterator[str]:
    """Report anything unusual about the input files."""
    from nmtflex.corpus.readers import unread_beside

    for file in (file for files in inputs.values() for file in files):
        if not file["pairs"]:
            yield f"{file['path']}: not read: --max-pairs {limit:,} was already reached"
        elif file["byte_order_mark"]:
            yield f"{file['path']}: removed the byte-order mark at its start"
        for other in unread_beside(Path(file["path"])):
            yield f"warning: {file['path']} was read, but {other} beside it was not"
    yield from _same_data(inputs)


def _same_data(inputs: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """Warn if a validation or test file has the same content as a training file."""
    training = {file["sha256"]: file["path"] for file in inputs.get("train", [])}
    for split in ("valid", "test"):
        for file in inputs.get(split, []):
            if other := training.get(file["sha256"]):
                same = "" if other == file["path"] else f" the same as {other}:"
                yield (
                    f"warning: {split}: {file['path']} is{same} training data; scores on it say "
                    f"nothing about new sentences"
                )


def _sample(sample: dict[str, int]) -> str:
    """Return what subwords were learned from."""
    if sample["pairs"] == sample["of"]:
        return f"all {sample['of']:,} training pairs"
    return f"{sample['pairs']:,} of {sample['of']:,} training pairs, spread evenly,"


def _counts(split: dict[str, Any], reasons: dict[str, str] | None = None, limit: int = 0) -> str:
    """Return how many pairs of a split were read, kept and dropped, and why."""
    read, dropped = f"{counted(split['read'], 'pair')} read", split["dropped"]
    if limit:
        full = split["read"] == limit
        read += " (the first ones)" if full else f" (all; --max-pairs is {limit:,})"
    counts = f"{read}, {split['kept']:,} kept, {sum(dropped.values()):,} dropped"
    if reasons:
        counts += f" ({', '.join(f'{dropped[key]:,} {words}' for key, words in reasons.items())})"
    return counts


def _joined(split: dict[str, Any], options: dict[str, Any]) -> Iterator[str]:
    """Report the samples of several sentences, and which sentences are in none."""
    if not (about := split.get("concat")):
        return
    line = (
        f"joined: {counted(about['samples'], 'sample')} of 2 to {options['concat']} sentences; "
        f"{split['kept'] - about['sentences']:,} of {counted(split['kept'], 'sentence')} in none"
    )
    if about["shortened"]:
        line += f"; {about['shortened']:,} ended at {options['concat_length']:,} tokens"
    yield line


def _unknown(split: dict[str, Any]) -> str:
    """Return the share of a split's tokens that are not in the vocabulary."""
    shares = [
        f"{100 * split[side]['unknown'] / max(1, split[side]['tokens']):.2f} % {side}"
        for side in ("source", "target")
    ]
    return f"unknown tokens: {', '.join(shares)}"
