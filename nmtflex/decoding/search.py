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
from nmtflex.decoding.ranking import best
from nmtflex.decoding.tally import Tally
from nmtflex.errors import RunError
from nmtflex.text.vocabulary import BOS_ID, EOS_ID, PAD_ID


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
) -> list[list[Hypothesis]]:
    """Search the best translations of a batch of sentences.

    A finished hypothesis takes a slot of its sentence's beam, and a sentence ends when no live one
    is left, so at most ``config.beam`` are found. At the maximum length, which depends on the
    sentence alone, EOS is the one word allowed, and its probability counts. PAD and BOS are never
    produced. Candidates of equal log-probability rank by lowest word id, then by their
    hypothesis's rank; nothing depends on the other sentences of the batch.

    Args:
        models: One, or several whose probabilities are averaged, in evaluation mode.
        sources: Ids of each sentence without BOS and EOS; none of them empty.
        config: Beam size, length penalty and maximum length.
        tally: Takes the count of score computations, if given.

    Returns:
        Each sentence's hypotheses, by score, the best first.

    Raises:
        RunError: The model predicts NaN, or gives every continuation the probability 0.
    """
    ensemble = Ensemble(models, sources, counting=tally is not None)
    device = ensemble.device
    limits = torch.tensor(
        [config.max_length or 3 * len(ids) + 20 for ids in sources], device=device
    )
    last_steps = set(limits.tolist())
    rows = torch.arange(len(sources), device=device)
    slots = torch.full_like(rows, config.beam)  # [B], beam size - finished hypotheses
    beam = Beam(
        rows, rows, torch.full_like(rows, BOS_ID), torch.zeros_like(rows, dtype=torch.float64)
    )
    live: list[Beam] = []
    ended: list[Beam] = []
    while len(beam.rows):
        log_probs = ensemble.step(beam.rows, beam.tokens)
        log_probs[:, PAD_ID] = -torch.inf
        log_probs[:, BOS_ID] = -torch.inf
        if len(live) in last_steps:
            _leave_only_eos(log_probs, limits[beam.rows] == len(live))
        chosen = _extend(beam, log_probs, slots)
        at_end = chosen.tokens == EOS_ID
        ended.append(chosen.select(at_end))
        slots.index_add_(0, ended[-1].rows, torch.full_like(ended[-1].rows, -1))
        beam = chosen.select(~at_end)
        live.append(beam)
        ensemble.select(beam.parents)
    if tally is not None:
        ensemble.report(tally)
    return _collect(live, ended, len(sources), config.length_penalty)


def _leave_only_eos(log_probs: Tensor, rows: Tensor) -> None:
    """Forbid all words but EOS to the hypotheses where ``rows`` [N] is True."""
    eos = log_probs[rows, EOS_ID]
    log_probs[rows] = -torch.inf
    log_probs[rows, EOS_ID] = eos


def _extend(beam: Beam, log_probs: Tensor, slots: Tensor) -> Beam:
    """Return the best continuations of each sentence, as many as it has slots.

    Each hypothesis's best words are found first, in its own log-probabilities [N, V], so that the
    sums and the choice among a sentence's hypotheses touch small tensors alone.
    """
    width = int(slots[beam.rows].max())
    values, tokens = best(log_probs, width)  # [N, K]
    check_numbers(values[:, 0])
    totals = beam.totals[:, None] + values
    # Sentences still open, and each hypothesis's place among those of its sentence.
    open_rows, which, counts = torch.unique_consecutive(
        beam.rows, return_inverse=True, return_counts=True
    )
    first = counts.cumsum(0) - counts
    place = torch.arange(len(beam.rows), device=totals.device) - first[which]
    most = int(counts.max())
    grid = totals.new_full((len(open_rows), most, totals.shape[1]), -torch.inf)
    grid[which, place] = totals
    keys = tokens.new_zeros(grid.shape)
    keys[which, place] = tokens * most + place[:, None]  # word first, then hypothesis
    totals, keys = best(grid.flatten(1), width, keys.flatten(1))
    rank = torch.arange(totals.shape[1], device=totals.device)
    keep = (rank < slots[open_rows, None]) & (totals > -torch.inf)
    sentence = keep.nonzero()[:, 0]
    keys = keys[keep]
    return Beam(
        rows=open_rows[sentence],
        parents=first[sentence] + keys % most,
        tokens=keys // most,
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
