"""Beam search for translations that begin with given words and contain given terms.

Post and Vilar (2018), https://aclanthology.org/N18-1119: the beam is divided among hypotheses by
how much of the constraints they have met, so that those that lack a term do not crowd out those
that have it, nor the other way round. Here it is divided by the number of terms, not of their
tokens, which are often more than the beam. The tokens of a term behind its first one have to come
and are free when hypotheses are compared: a term that has just begun is no better than a whole one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from nmtflex.config import SearchConfig
from nmtflex.decoding.constraints import Constraints, Terms
from nmtflex.decoding.ensemble import Encoded, Ensemble, Ids, StepModel, check_numbers, encode
from nmtflex.decoding.repeats import Repeats
from nmtflex.decoding.search import (
    NEVER,
    Bar,
    Hypothesis,
    collect,
    grow,
)
from nmtflex.decoding.tally import Tally
from nmtflex.ops.beam import places
from nmtflex.ops.dispatch import steady_threads
from nmtflex.ops.tensors import download
from nmtflex.text.edges import Edges
from nmtflex.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

Array = NDArray[Any]

LEAST_BEAM = 2  # with a term: one hypothesis that has it and one that waits


class Steered(NamedTuple):
    """N hypotheses of one length, as ``Beam`` has them; and what they have of the constraints.

    ``compared`` [N] is the summed log-probability without the tokens that had to come; ``progress``
    [N, P] is that of ``Terms``.
    """

    rows: Array
    parents: Array
    tokens: Array
    totals: Array
    compared: Array
    progress: Array

    def select(self, chosen: Array) -> Steered:
        """Return the hypotheses ``chosen``, a mask [N] or indices."""
        return Steered(*(part[chosen] for part in self))


@torch.inference_mode()
@steady_threads()
def constrained_search(
    models: Sequence[StepModel],
    sources: Sequence[Ids] | Encoded,
    config: SearchConfig,
    tally: Tally | None = None,
    wanted: int | None = None,
    limits: Sequence[int] | None = None,
    *,
    constraints: Sequence[Constraints],
    edges: Edges,
) -> list[list[Hypothesis]]:
    """Search the best translations of a batch of sentences under constraints.

    Without any constraint of a sentence it finds what ``beam_search`` does. Where a translation may
    not be long enough for its constraints, it may be as long as these. Their words may repeat an
    n-gram.

    Args:
        models: See ``beam_search``, as for all that is not said here.
        sources: As there.
        config: Beam size, length penalty and maximum length. With terms, the beam has at least two
            hypotheses.
        tally: Receives the count of score computations, if given.
        wanted: How many translations of each sentence to return; None for the whole beam.
        limits: Most tokens of each sentence's translation, if less than in ``config``.
        constraints: Of each sentence.
        edges: Of words, of the target side.

    Returns:
        Each sentence's hypotheses that meet its constraints, by score, the best first.

    Raises:
        RunError: The model predicts NaN, or gives every continuation the probability 0.
    """
    encoded = sources if isinstance(sources, Encoded) else encode(models, sources)
    ensemble = Ensemble(models, encoded, counting=tally is not None)
    lengths = config.longest_outputs(encoded.lengths.tolist(), limits)
    most = np.maximum(lengths, [each.tokens for each in constraints])
    rows = np.arange(len(lengths))
    least = [LEAST_BEAM if each.terms else 1 for each in constraints]
    slots = np.maximum(config.beam, least)
    width = max(config.beam, LEAST_BEAM) + 1  # one more, since EOS may not be allowed
    repeats = Repeats(config.no_repeat_ngram) if config.no_repeat_ngram else None
    extension = _Extension(ensemble, constraints, edges, most, slots, width, repeats)
    nothing = np.zeros(len(rows))
    progress = np.zeros((len(rows), extension.terms.count), dtype=np.int64)
    beam = Steered(rows, rows, np.full_like(rows, BOS_ID), nothing, nothing, progress)
    bar = Bar(most, config.length_penalty, min(wanted or config.beam, config.beam))
    live, ended = grow(ensemble, beam, slots, bar, extension)
    if tally is not None:
        ensemble.report(tally)
    return collect(live, ended, len(lengths), config.length_penalty)


class _Extension:
    """Makes each step's hypotheses out of those of the step before.

    Args:
        ensemble: The models.
        constraints: Of each of B sentences.
        edges: Of words.
        most: [B], most tokens of a translation.
        slots: [B], hypotheses that a sentence may have; others change it.
        width: The best words of each hypothesis that are looked at. It must not depend on the
            batch: which words a sentence may take depends on more than its slots.
        repeats: Of n-grams, if they are not allowed.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        constraints: Sequence[Constraints],
        edges: Edges,
        most: Array,
        slots: Array,
        width: int,
        repeats: Repeats | None,
    ) -> None:
        self._ensemble = ensemble
        self._most = most
        self._slots = slots
        self._width = width
        self._repeats = repeats
        self.terms = Terms([each.terms for each in constraints], edges)
        longest = max(len(each.prefix) for each in constraints)
        self._prefixes = np.full((len(constraints), longest), -1)  # [B, L]
        for row, each in enumerate(constraints):
            self._prefixes[row, : len(each.prefix)] = each.prefix

    def __call__(self, beam: Steered, step: int) -> Steered:
        """Return the next hypotheses, given those that have ``step`` words."""
        terms = self.terms
        missing = terms.missing(beam.rows, beam.progress)
        spare = self._most[beam.rows] - step - missing
        only = np.where(self._most[beam.rows] == step, EOS_ID, -1)
        also = terms.next(beam.rows, beam.tokens, beam.progress, spare)  # [N, P]
        if step < self._prefixes.shape[1]:
            forced = self._prefixes[beam.rows, step]
            only = np.where(forced >= 0, forced, only)
            also[forced >= 0] = PAD_ID
        values, words = self._best(beam, step, only, also)
        best = words.shape[1] - terms.count
        allowed = values > -np.inf
        allowed[:, :best] &= (words[:, :best] != EOS_ID) | (missing == 0)[:, None]
        parents, ranks = np.nonzero(allowed)
        tokens, gained = words[parents, ranks].astype(np.int64), values[parents, ranks]
        rows, before = beam.rows[parents], beam.progress[parents]
        progress = terms.advance(rows, beam.tokens[parents], before, tokens, spare[parents])
        totals = beam.totals[parents] + gained
        had_to_come = terms.goes_on(rows, before, progress)
        compared = beam.compared[parents] + np.where(had_to_come, 0, gained)
        found = Steered(rows, parents, tokens, totals, compared, progress)
        room = self._most[rows] - step - 1 - terms.missing(rows, progress) >= 0
        return self._chosen(found.select(room | (tokens == EOS_ID)))

    def _best(self, beam: Steered, step: int, only: Array, also: Array) -> tuple[Array, Array]:
        """Return log-probabilities and words [N, K + P]: the best, then ``also``.

        What is no word of ``also``, or is there before, has -inf.
        """
        ids = self._ensemble.upload(only, *also.T)
        repeats, width = self._repeats, self._width
        more = 0 if repeats is None else repeats.grow(beam.parents, beam.tokens, step)
        found = self._ensemble.best_words(width + more, NEVER, ids[0], ids[1:].T.contiguous())
        values, words = download(*found)
        check_numbers(values[:, 0])
        if repeats is not None:
            best = words.shape[1] - also.shape[1]
            fresh = repeats.without(values[:, :best], words[:, :best], width, only >= 0)
            values = np.concatenate([fresh[0], values[:, best:]], axis=1)
            words = np.concatenate([fresh[1], words[:, best:]], axis=1)
        values = values.astype(np.float64)
        for place in range(words.shape[1] - also.shape[1], words.shape[1]):
            word = words[:, place, None]
            values[((words[:, :place] == word) | (word == PAD_ID)).any(1), place] = -np.inf
        return values, words

    def _chosen(self, found: Steered) -> Steered:
        """Return the best of each sentence, as many as it has slots.

        They are taken in turns from the hypotheses that have the same number of terms.
        """
        found = found.select(np.lexsort((found.tokens, -found.compared, found.rows)))
        stage = self.terms.stage(found.rows, found.progress)
        by_stage = np.argsort(found.rows * (self.terms.count + 1) + stage, kind="stable")
        place = np.empty_like(by_stage)
        place[by_stage] = places((found.rows * (self.terms.count + 1) + stage)[by_stage])
        order = np.lexsort((-stage, place, found.rows))
        found = found.select(order)
        return found.select(places(found.rows) < self._slots[found.rows])
