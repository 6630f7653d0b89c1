"""Time and memory of the entries' decoding: microseconds a target token, bytes a source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from nmtflex.bench.decoding import (
    Report,
    Subject,
    Times,
    clock_rounds,
    computing,
    count,
    machine,
    subjects_of,
)
from nmtflex.bench.random_model import bytes_in
from nmtflex.comparison.plan import Candidate
from nmtflex.config import BenchConfig
from nmtflex.decoding.opening import open_ensemble
from nmtflex.evaluation.run_scores import chosen_split
from nmtflex.evaluation.runs import raw_split
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.text.vocabulary import UNK_ID

ATTENTION = "attention"  # among the parts of a decoding


def measure(
    candidates: Mapping[str, Candidate], config: BenchConfig, report: Report = lambda _: None
) -> dict[str, Any]:
    """Let entries decode in turns, as ``nmtflex bench`` does; return plain JSON types.

    Args:
        candidates: By the entry's name.
        config: Rounds, split and number of sentences.
        report: Receives progress messages.

    Raises:
        NmtflexError: As ``bench_runs``.
    """
    paths = [one.path for one in candidates.values()]
    split = chosen_split(paths, config.split, report)
    opened = [open_ensemble([one.path], *one.decoding) for one in candidates.values()]
    decoding = next(iter(candidates.values())).decoding
    data = raw_split(paths, split).first(config.sentences)
    subjects = subjects_of(paths, list(candidates), opened, data)
    counts = []
    for one in subjects:
        report(f"{one.name}: counting over {len(one.sources):,} sentences of {split}")
        counts.append(count(one))
    clocked = clock_rounds(subjects, config.repeats, report)
    found = {}
    for one, counted, times in zip(subjects, counts, clocked, strict=True):
        attention = times.parts.get(ATTENTION)
        length = mean_length(one)
        found[one.name] = {
            "target_tokens": counted.tokens,
            "microseconds": _per_token(times.seconds, counted.tokens),
            "attention_microseconds": attention and _per_token(attention, counted.tokens),
            "source_positions": length,
            "memory_bytes": source_bytes(one.opened.run.model, length),
        }
    place = opened[0].run.model.device
    return {
        "split": split,
        **decoding.search.to_dict(),
        **decoding.batch.to_dict(),
        **computing(place, decoding.device.dtype),
        "machine": machine(place),
        "entries": found,
    }


def mean_length(subject: Subject) -> int:
    """Return the mean length of the sources that are not empty, in tokens, rounded."""
    lengths = [len(ids) for ids in subject.sources if ids]
    return round(sum(lengths) / len(lengths))


def source_bytes(model: Seq2Seq, length: int) -> int:
    """Return the bytes that are kept of one source while it is translated.

    They are those of the decoder's memory: what ``Attention.prepare`` makes, in all heads and
    attending layers, or the source's summary where SSRU or transformer layers have no attention.
    What is there twice counts once. Weights, and what grows with the target, do not count.

    Args:
        model: Ready to decode.
        length: Tokens of the source.
    """
    source = torch.full((1, length), UNK_ID, device=model.device)
    with torch.inference_mode():
        memory, _ = model.encode(source, torch.tensor([length]), traced=False)
    return bytes_in(memory)


def _per_token(seconds: Times, tokens: int) -> dict[str, Any]:
    """Return times of decoding as microseconds a target token."""
    return Times([1e6 * taken / tokens for taken in seconds.rounds]).to_dict()
