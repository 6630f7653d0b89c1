"""Forced decoding: the log-probability of given translations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from nmtflex.decoding.batching import batches, buffers
from nmtflex.decoding.ensemble import Ensemble, Ids, StepModel, check_numbers, encode
from nmtflex.errors import DataError
from nmtflex.ops.tensors import download, upload
from nmtflex.text.pipeline import TextPipeline
from nmtflex.text.visible import counted
from nmtflex.text.vocabulary import BOS_ID, EOS_ID

BUFFER = 4096  # pairs read ahead, to sort them by length


class PairScore(NamedTuple):
    """The score of a given translation: natural logarithm, and target tokens including EOS."""

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

    It runs the same steps as the search, so a hypothesis gets the same number as in the search. For
    an empty source the empty translation has log-probability 0, any other one -inf.

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
        values = _batch_log_probabilities(models, [pairs[index] for index in batch])
        for index, value in zip(batch, values, strict=True):
            found[index] = value
    return found


@torch.inference_mode()
def _batch_log_probabilities(
    models: Sequence[StepModel], pairs: Sequence[tuple[Ids, Ids]]
) -> list[float]:
    """Score pairs; no source is empty."""
    ensemble = Ensemble(models, encode(models, [source for source, _ in pairs]))
    totals = torch.zeros(len(pairs), dtype=torch.float64, device=ensemble.device)
    for running, expected in forced_steps(ensemble, [target for _, target in pairs]):
        gained = ensemble.log_probs().gather(1, expected[:, None]).squeeze(1)
        totals.index_add_(0, running, gained.double())
    [found] = download(totals)  # at the end, since it makes the CPU wait for a GPU
    check_numbers(found)
    return found.tolist()


def forced_steps(
    ensemble: Ensemble, targets: Sequence[Ids], rows: Sequence[int] | None = None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Feed N given targets to the models step by step, EOS last.

    Args:
        ensemble: At its start.
        targets: Ids without BOS and EOS.
        rows: The encoded sentence of each target, ascending; None: one each.

    Yields:
        At each step the n targets that still run, [n] numbers from 0, ascending, and the words [n]
        that they expect; ``ensemble.log_probs()`` has their probabilities.
    """
    sentences = np.arange(len(targets)) if rows is None else np.array(rows)
    words = [torch.tensor([*target, EOS_ID]) for target in targets]
    by_step = upload(pad_sequence(words), ensemble.device)  # [T, N]
    lengths = np.array(list(map(len, words)))
    left = np.arange(len(targets))
    ensemble.select(sentences)
    numbers, of, tokens = ensemble.upload(left, sentences, np.full_like(left, BOS_ID))
    for step, expected in enumerate(by_step):
        goes_on = lengths[left] > step
        if not goes_on.all():
            left = left[goes_on]
            ensemble.select(np.flatnonzero(goes_on))
            numbers, of = ensemble.upload(left, sentences[left])
            tokens = by_step[step - 1].index_select(0, numbers)
        ensemble.step(of, tokens)
        tokens = expected.index_select(0, numbers)
        yield numbers, tokens


def score_pairs(
    models: Sequence[StepModel],
    pipeline: TextPipeline,
    pairs: Iterable[tuple[str, str]],
    batch_sentences: int = 64,
) -> Iterator[PairScore]:
    """Score raw lines against each other, in order and in constant memory.

    A target is segmented again: a translation that the search built from unusual subwords gets the
    log-probability of the usual ones. Unknown words count as ``<unk>``.

    Args:
        models: In evaluation mode, with one vocabulary.
        pipeline: The text pipeline they were trained with.
        pairs: Raw source and target lines.
        batch_sentences: Pairs computed together.

    Raises:
        NmtflexError: From reading a pair, after the pairs before it; or the model is broken.
    """
    for buffer in buffers(pairs, BUFFER):
        ids = [
            (pipeline.source.encode(one), pipeline.target.encode(other)) for one, other in buffer
        ]
        values = log_probabilities(models, ids, batch_sentences)
        for value, (_, target) in zip(values, ids, strict=True):
            yield PairScore(value, len(target) + 1)


def split_columns(lines: Iterable[str], name: str) -> Iterator[tuple[str, str]]:
    """Split lines of source, tab, target; errors call their file ``name``.

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
