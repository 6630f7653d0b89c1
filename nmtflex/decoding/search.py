"""Beam search over all sentences of a batch, and all their hypotheses, at once.

The live hypotheses of a batch lie in one list of N, by sentence and within a sentence by rank; a
sentence that is done has none in it, so nothing is computed for it. Each step's list points back
into that of the step before, and words are read off these pointers once, at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmtflex.config import SearchConfig
from nmtflex.decoding.ensemble import Ensemble, Ids, StepModel, check_numbers
from nmtflex.decoding.tally import Tally
from nmtflex.errors import RunError
from nmtflex.ops.vocabulary.ranking import best
from nmtflex.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

NEVER = (PAD_ID, BOS_ID)  # words that are never produced


class Hypothesis(NamedTuple):
    """One translation of a sentence.

    ``ids`` has no BOS or EOS; ``log_probability`` is the sum of natural logarithms with EOS
    counted; ``score`` is that sum over length^alpha, EOS counted.
    """

    ids: Ids
    score: float
    log_probability: float


class Beam(NamedTuple):
    """N hypotheses of one length.

    Each has a sentence, the hypothesis of the step before that it continues, its last word, and
    its summed log-probability (float64), all [N].
    """

    rows: Tensor
    parents: Tensor
    tokens: Tensor
    totals: Tensor

    def select(self, chosen: Tensor) -> Beam:
        """Return the hypotheses where ``chosen`` [N] is True."""
        index = chosen.nonzero().squeeze(1)
        return Beam(*(part.index_select(0, index) for part in self))


@torch.inference_mode()
def beam_search(
    models: Sequence[StepModel],
    sources: Sequence[Ids],
    config: SearchConfig,
    tally: Tally | None = None,
    wanted: int | None = None,
    limits: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Search the best translations of a batch of sentences.

    A finished hypothesis takes a slot of its sentence's beam, and a sentence ends when no live one
    is left, so at most ``config.beam`` are found. At the maximum length, which depends on the
    sentence alone, EOS is the one word allowed, and its probability counts. PAD and BOS are never
    produced. Candidates of equal log-probability rank by lowest word id, then by their
    hypothesis's rank; nothing depends on the other sentences of the batch.

    A sentence also ends when none of its live hypotheses can reach the score of its ``wanted`` best
    finished ones any more, even if all words to come were certain and as many as the maximum length
    allows. This changes none of the ``wanted`` best. Giving up single hypotheses would: one of
    their continuations might take a slot that another candidate takes instead.

    Args:
        models: One, or several whose probabilities are averaged, in evaluation mode.
        sources: Ids of each sentence without BOS and EOS; none of them empty.
        config: Beam size, length penalty and maximum length.
        tally: Takes the count of score computations, if given.
        wanted: How many translations of each sentence are asked for; None for the whole beam.
        limits: The most tokens of each sentence's translation, where ``config`` leaves more.

    Returns:
        Each sentence's hypotheses, by score, the best first: the ``wanted`` best that the whole
        search would find, perhaps more.

    Raises:
        RunError: The model predicts NaN, or gives every continuation the probability 0.
    """
    ensemble = Ensemble(models, sources, counting=tally is not None)
    device = ensemble.device
    lengths = [config.max_length or 3 * len(ids) + 20 for ids in sources]
    if limits is not None:
        lengths = list(map(min, lengths, limits))
    most = torch.tensor(lengths, device=device)
    last_steps = set(lengths)
    rows = torch.arange(len(sources), device=device)
    slots = torch.full_like(rows, config.beam)  # [B], beam size - finished hypotheses
    beam = Beam(
        rows, rows, torch.full_like(rows, BOS_ID), torch.zeros_like(rows, dtype=torch.float64)
    )
    bar = Bar(most, config.length_penalty, min(wanted or config.beam, config.beam))
    live: list[Beam] = []
    ended: list[Beam] = []
    while len(beam.rows):
        ensemble.step(beam.rows, beam.tokens)
        only = None
        if len(live) in last_steps:
            only = torch.where(most[beam.rows] == len(live), EOS_ID, -1)
        width = int(slots[beam.rows].max())
        chosen = _extend(beam, *ensemble.best_words(width, NEVER, only), width, slots)
        at_end = chosen.tokens == EOS_ID
        ended.append(chosen.select(at_end))
        slots.index_add_(0, ended[-1].rows, torch.full_like(ended[-1].rows, -1))
        bar.raise_by(ended[-1], len(live) + 1)
        beam = chosen.select(~at_end & bar.open_sentences(chosen, ~at_end)[chosen.rows])
        live.append(beam)
        ensemble.select(beam.parents)
    if tally is not None:
        ensemble.report(tally)
    return _collect(live, ended, len(sources), config.length_penalty)


class Bar:
    """The score that a hypothesis must come up to, a sentence each: the worst that is wanted.

    Args:
        limits: [B], most words of a sentence's translation.
        length_penalty: Alpha.
        wanted: How many translations of each sentence are asked for.
    """

    def __init__(self, limits: Tensor, length_penalty: float, wanted: int) -> None:
        # A sum of logarithms only falls, and its score is best where it is as long as can be.
        self._longest = (limits + 1.0).to(torch.float64) ** length_penalty
        self._length_penalty = length_penalty
        self._best = self._longest.new_full((len(limits), wanted), -torch.inf)

    def raise_by(self, ended: Beam, length: int) -> None:
        """Take account of hypotheses that ended with ``length`` tokens, EOS counted."""
        if not len(ended.rows):
            return
        of = Sentences(ended.rows)
        scores = self._best.new_full((len(self._best), of.most), -torch.inf)
        scores[ended.rows, of.place] = ended.totals / length**self._length_penalty
        wanted = self._best.shape[1]
        self._best = torch.cat([self._best, scores], dim=1).topk(wanted).values

    def open_sentences(self, beam: Beam, live: Tensor) -> Tensor:
        """Return which sentences [B] have a ``live`` [N] hypothesis that may reach the bar."""
        # A little is allowed for rounding, after which a logarithm may be above 0.
        highest = (1 - 1e-6) * beam.totals / self._longest[beam.rows]
        hopeful = live & (highest >= self._best[beam.rows, -1])
        count = torch.zeros_like(self._longest)
        return count.index_add_(0, beam.rows, hopeful.to(count.dtype)) > 0


class Sentences:
    """The sentences that hypotheses belong to.

    Args:
        rows: [N], ascending: the sentence of each hypothesis.
    """

    def __init__(self, rows: Tensor) -> None:
        self.rows, self.which, counts = torch.unique_consecutive(
            rows, return_inverse=True, return_counts=True
        )  # [R] sentences that have any, [N] which of these
        self.first = counts.cumsum(0) - counts  # [R], of each sentence's hypotheses
        self.place = torch.arange(len(rows), device=rows.device) - self.first[self.which]  # [N]
        self.most = int(counts.max())  # hypotheses of a sentence


def _extend(beam: Beam, values: Tensor, tokens: Tensor, width: int, slots: Tensor) -> Beam:
    """Return the best continuations of each sentence, as many as it has slots.

    Args:
        beam: N hypotheses.
        values: [N, K], log-probabilities of the best words of each.
        tokens: [N, K], these words.
        width: The most that a sentence may have.
        slots: [B], how many each sentence may have.
    """
    check_numbers(values[:, 0])
    totals = beam.totals[:, None] + values
    of = Sentences(beam.rows)
    grid = totals.new_full((len(of.rows), of.most, totals.shape[1]), -torch.inf)
    grid[of.which, of.place] = totals
    keys = tokens.new_zeros(grid.shape)
    keys[of.which, of.place] = tokens * of.most + of.place[:, None]  # word first, then hypothesis
    totals, keys = best(grid.flatten(1), width, keys.flatten(1))
    rank = torch.arange(totals.shape[1], device=totals.device)
    keep = (rank < slots[of.rows, None]) & (totals > -torch.inf)
    sentence = keep.nonzero()[:, 0]
    keys = keys[keep]
    return Beam(
        rows=of.rows[sentence],
        parents=of.first[sentence] + keys % of.most,
        tokens=keys // of.most,
        totals=totals[keep],
    )


def _collect(
    live: list[Beam], ended: list[Beam], sentences: int, length_penalty: float
) -> list[list[Hypothesis]]:
    """Follow the pointers of all finished hypotheses back, and rank those of each sentence."""
    pointers = torch.cat([step.parents for step in ended]).cpu().numpy()
    totals = torch.cat([step.totals for step in ended]).tolist()
    rows = torch.cat([step.rows for step in ended]).tolist()
    counts = [len(step.rows) for step in ended]
    starts = np.cumsum([0, *counts])
    # Finished hypotheses lie by length, so those longer than a step are the ones from a start on.
    words = np.zeros((len(rows), len(live)), dtype=np.int64)
    for step in range(len(live) - 1, 0, -1):
        longer = slice(starts[step], None)
        before = live[step - 1]
        words[longer, step - 1] = before.tokens.cpu().numpy()[pointers[longer]]
        pointers[longer] = before.parents.cpu().numpy()[pointers[longer]]
    lengths = np.repeat(np.arange(len(counts)), counts).tolist()
    found: list[list[Hypothesis]] = [[] for _ in range(sentences)]
    for index, (row, length, total) in enumerate(zip(rows, lengths, totals, strict=True)):
        score = total / (length + 1) ** length_penalty
        found[row].append(Hypothesis(words[index, :length].tolist(), score, total))
    for hypotheses in found:
        if not hypotheses:
            raise RunError("the model gives every continuation the probability 0; it is broken")
        hypotheses.sort(key=lambda hypothesis: -hypothesis.score)
    return found
