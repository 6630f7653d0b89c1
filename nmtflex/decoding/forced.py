"""Forced decoding: the log-probability of translations that are given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from nmtflex.decoding.batching import batches, buffers
from nmtflex.decoding.ensemble import Ensemble, Ids, StepModel, check_numbers
from nmtflex.errors import DataError
from nmtflex.ops.tensors import download, upload
from nmtflex.text.pipeline import TextPipeline
from nmtflex.text.visible import counted
from nmtflex.text.vocabulary import BOS_ID, EOS_ID

BUFFER = 4096  # pairs read ahead, to sort them by length


class PairScore(NamedTuple):
    """What a model says of a given translation: natural logarithm, and target tokens with EOS."""

    log_probability: float
    tokens: int

    @property
    def per_token(self) -> float:
        """The mean over the target's tokens."""
        return self.log_probability / self.tokens


def log_probabilities(
    models: Sequence[StepModel], pairs: Sequence[tuple[Ids, Ids]], batch_sentences: int = 64
) -> list[float]:
    """Return log p(target, EOS | source) of each pair, a sum of natural logarithms.

    It runs the same steps as the search, so a hypothesis gets the number that the search reported.
    An empty source has one translation, the empty one: log-probability 0, anything else -inf.

    Args:
        models: One, or several whose probabilities are averaged, in evaluation mode.
        pairs: Ids of source and target, without BOS and EOS.
        batch_sentences: Pairs computed together.

    Raises:
        RunError: The model predicts NaN.
    """
    found = [0.0 if not target else -torch.inf for _, target in pairs]
    lengths = [max(len(source), len(target)) if source else 0 for source, target in pairs]
    for batch in batches(lengths, batch_sentences):
        # The longest target first, so that those still running are always the first ones.
        batch.sort(key=lambda index: -len(pairs[index][1]))
        values = _batch_log_probabilities(models, [pairs[index] for index in batch])
        for index, value in zip(batch, values, strict=True):
            found[index] = value
    return found


@torch.inference_mode()
def _batch_log_probabilities(
    models: Sequence[StepModel], pairs: Sequence[tuple[Ids, Ids]]
) -> list[float]:
    """Score pairs that lie by length of target, the longest first; no source is empty."""
    ensemble = Ensemble(models, [source for source, _ in pairs])
    totals = torch.zeros(len(pairs), dtype=torch.float64, device=ensemble.device)
    for expected in forced_steps(ensemble, [target for _, target in pairs]):
        totals[: len(expected)] += ensemble.log_probs().gather(1, expected[:, None]).squeeze(1)
    [found] = download(totals)  # at the end, since looking makes the processor wait for a GPU
    check_numbers(found)
    return found.tolist()


def forced_steps(ensemble: Ensemble, targets: Sequence[Ids]) -> Iterator[Tensor]:
    """Feed given targets to the models, one step after the other, EOS last.

    Args:
        ensemble: With a sentence encoded for each target.
        targets: Ids without BOS and EOS, the longest first.

    Yields:
        At each step the words expected [n] of the n targets still running, which are the first
        ones; ``ensemble.log_probs()`` tells what the models say of them.
    """
    rows = torch.arange(len(targets), device=ensemble.device)
    tokens = torch.full_like(rows, BOS_ID)
    words = [torch.tensor([*target, EOS_ID]) for target in targets]
    by_step = upload(pad_sequence(words), ensemble.device)  # [T, n]
    for step, expected in enumerate(by_step):
        running = sum(len(target) > step for target in words)
        if running < len(rows):
            rows, tokens = rows[:running], tokens[:running]
            ensemble.select(np.arange(running))
        ensemble.step(rows, tokens)
        tokens = expected[:running]
        yield tokens


def score_pairs(
    models: Sequence[StepModel],
    pipeline: TextPipeline,
    pairs: Iterable[tuple[str, str]],
    batch_sentences: int = 64,
) -> Iterator[PairScore]:
    """Score raw lines against each other, in order and in constant memory.

    A target is segmented anew: a translation that the search built from other subwords than those
    of its text gets the log-probability of the usual ones. Unknown words count as ``<unk>``.

    Args:
        models: In evaluation mode, with one vocabulary.
        pipeline: The text pipeline they were trained with.
        pairs: Raw source and target lines.
        batch_sentences: Pairs computed together.

    Raises:
        NmtflexError: What reading a pair raises, after the pairs before it; or a broken model.
    """
    for buffer in buffers(pairs, BUFFER):
        ids = [
            (pipeline.source.encode(one), pipeline.target.encode(other)) for one, other in buffer
        ]
        values = log_probabilities(models, ids, batch_sentences)
        for value, (_, target) in zip(values, ids, strict=True):
            yield PairScore(value, len(target) + 1)


def split_columns(lines: Iterable[str], name: str) -> Iterator[tuple[str, str]]:
    """Part lines of source, tab, target; ``name`` says in an error where they come from.

    Raises:
        DataError: A line has not exactly two columns.
    """
    for number, line in enumerate(lines, 1):
        columns = line.split("\t")
        if len(columns) != 2:
            raise DataError(
                f"{name}:{number}: expected source, tab, target, but found "
                f"{counted(len(columns), 'column')}"
            )
        yield columns[0], columns[1]
