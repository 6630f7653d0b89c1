"""Beam search over all sentences of a batch, and all their hypotheses, at once.

The live hypotheses of a batch are one list of N, sorted by sentence and then by rank; a finished
sentence has none, so nothing is computed for it. Each step's list points back into that of the step
before, and the words are read off these pointers once, at the end.

These lists are on the CPU. A step of the search reads the most probable words from the models'
device in one transfer, the only one that waits for a GPU, and sends back the next step's input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from nmtflex.config import SearchConfig
from nmtflex.decoding.ensemble import Encoded, Ensemble, Ids, StepModel, check_numbers, encode
from nmtflex.decoding.repeats import Repeats
from nmtflex.decoding.tally import Tally
from nmtflex.errors import RunError
from nmtflex.ops.beam import SLACK, Beam, Rules
from nmtflex.ops.beam import extend as extend_beam
from nmtflex.ops.dispatch import steady_threads
from nmtflex.ops.tensors import download
from nmtflex.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

Array = NDArray[Any]

NEVER = (PAD_ID, BOS_ID)  # words that are never produced


class Hypothesis(NamedTuple):
    """One translation of a sentence.

    ``ids`` has no BOS or EOS; ``log_probability`` is the sum of natural logarithms with EOS
    counted; ``score`` is that sum over length^alpha, EOS counted. ``log_probabilities`` are those
    of each token, EOS last.
    """

    ids: Ids
    score: float
    log_probability: float
    log_probabilities: Sequence[float] = ()


class Grown(Protocol):
    """What every search knows of N hypotheses; see ``Beam``."""

    @property
    def rows(self) -> Array:
        """Their sentences [N], ascending."""

    @property
    def parents(self) -> Array:
        """The hypotheses of the step before [N]."""

    @property
    def tokens(self) -> Array:
        """Their last words [N]."""

    @property
    def totals(self) -> Array:
        """Their summed log-probabilities [N]."""


class Growing(Grown, Protocol):
    """Hypotheses of which some may be chosen."""

    def select(self, chosen: Array) -> Self:
        """Return the hypotheses ``chosen``, a mask [N] or indices."""


Hypotheses = TypeVar("Hypotheses", bound=Growing)


@torch.inference_mode()
@steady_threads()
def beam_search(
    models: Sequence[StepModel],
    sources: Sequence[Ids] | Encoded,
    config: SearchConfig,
    tally: Tally | None = None,
    wanted: int | None = None,
    limits: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Search the best translations of a batch of sentences.

    A finished hypothesis takes a slot of its sentence's beam, and a sentence ends when no live one
    is left, so at most ``config.beam`` are found. At the maximum length, which depends on the
    sentence alone, EOS is the only word allowed, and its probability counts. PAD and BOS are never
    produced. Candidates of equal log-probability rank by lowest word id, then by their
    hypothesis's rank; nothing depends on the other sentences of the batch. With
    ``config.no_repeat_ngram`` a hypothesis never takes a word that would repeat so many of its
    tokens.

    A sentence also ends when none of its live hypotheses can reach the score of its ``wanted`` best
    finished ones any more, even if all words up to the maximum length were certain. This changes
    none of the ``wanted`` best. Pruning single hypotheses would: one of their continuations might
    take a slot that another candidate takes instead.

    Args:
        models: One, or several whose probabilities are averaged, in evaluation mode.
        sources: Ids of each sentence without BOS and EOS, none of them empty; or what ``encode``
            has made of them.
        config: Beam size, length penalty and maximum length.
        tally: Receives the count of score computations, if given.
        wanted: How many translations of each sentence to return; None for the whole beam.
        limits: Most tokens of each sentence's translation, if less than in ``config``.

    Returns:
        Each sentence's hypotheses, by score, the best first: the ``wanted`` best of the
        full search, perhaps more.

    Raises:
        RunError: The model predicts NaN, or gives every continuation the probability 0.
    """
    encoded = sources if isinstance(sources, Encoded) else encode(models, sources)
    ensemble = Ensemble(models, encoded, counting=tally is not None)
    lengths = config.longest_outputs(encoded.lengths.tolist(), limits)
    most = np.array(lengths)
    last_steps = set(lengths)
    rows = np.arange(len(lengths))
    slots = np.full_like(rows, config.beam)  # [B], beam size - finished hypotheses
    beam = Beam(rows, rows, np.full_like(rows, BOS_ID), np.zeros(len(rows)))
    bar = Bar(most, config.length_penalty, min(wanted or config.beam, config.beam))
    repeats = Repeats(config.no_repeat_ngram) if config.no_repeat_ngram else None

    def extend(beam: Beam, step: int) -> Beam:
        only = None
        if step in last_steps:
            (only,) = ensemble.upload(np.where(most[beam.rows] == step, EOS_ID, -1))
        width = int(slots[beam.rows].max())
        more = 0 if repeats is None else repeats.grow(beam.parents, beam.tokens, step)
        values, words = download(*ensemble.best_words(width + more, NEVER, only))
        check_numbers(values[:, 0])
        if repeats is not None:
            values, words = repeats.without(values, words, width)
        found = extend_beam(beam.rows, beam.totals, values, words, slots)
        return Beam(beam.rows[found.parents], *found)

    if (fused := ensemble.fused()) is not None:
        rules = Rules(most, slots, *bar.scores, EOS_ID, np.array(NEVER), config.no_repeat_ngram)
        live, ended, greatest = fused(beam, rules)
        check_numbers(np.array([greatest]))
    else:
        live, ended = grow(ensemble, beam, slots, bar, extend)
    if tally is not None:
        ensemble.report(tally)
    return collect(live, ended, len(lengths), config.length_penalty)


def grow(
    ensemble: Ensemble,
    beam: Hypotheses,
    slots: Array,
    bar: Bar,
    extend: Callable[[Hypotheses, int], Hypotheses],
) -> tuple[list[Hypotheses], list[Hypotheses]]:
    """Let hypotheses grow until no sentence is open.

    Args:
        ensemble: The models, with the sentences encoded.
        beam: One hypothesis of each sentence, whose last word is BOS.
        slots: [B], beam sizes; finished hypotheses are subtracted.
        bar: Of the same sentences.
        extend: Returns the next hypotheses, given the last ones and how many words they have.

    Returns:
        For each step the hypotheses that go on, and those that have ended.
    """
    live: list[Hypotheses] = []
    ended: list[Hypotheses] = []
    while len(beam.rows):
        ensemble.select(beam.parents)
        ensemble.step(*ensemble.upload(beam.rows, beam.tokens))
        chosen = extend(beam, len(live))
        at_end = chosen.tokens == EOS_ID
        ended.append(chosen.select(at_end))
        slots -= np.bincount(ended[-1].rows, minlength=len(slots))
        bar.raise_by(ended[-1], len(live) + 1)
        beam = chosen.select(~at_end)
        beam = beam.select(bar.open_sentences(beam)[beam.rows])
        live.append(beam)
    return live, ended


class Bar:
    """The score that a hypothesis must reach, per sentence: the worst of the wanted ones.

    Args:
        limits: [B], most words of a sentence's translation.
        length_penalty: Alpha.
        wanted: How many translations of each sentence to return.
    """

    def __init__(self, limits: Array, length_penalty: float, wanted: int) -> None:
        # A sum of logarithms only falls, and its score is best at the maximum length.
        self._longest = (limits + 1.0) ** length_penalty
        self._length_penalty = length_penalty
        self._best = np.full((len(limits), wanted), -np.inf)  # the worst first

    @property
    def scores(self) -> tuple[Array, Array, float]:
        """The wanted ones, the divisors at the greatest length, and alpha; see ``ops.beam``."""
        return self._best, self._longest, self._length_penalty

    def raise_by(self, ended: Growing, length: int) -> None:
        """Count hypotheses that ended with ``length`` tokens, EOS counted."""
        scores = ended.totals / length**self._length_penalty
        for row, score in zip(ended.rows, scores, strict=True):
            best = self._best[row]
            if score > best[0]:
                best[0] = score
                best.sort()

    def open_sentences(self, live: Growing) -> Array:
        """Return which sentences [B] have a live hypothesis that may reach the bar."""
        highest = SLACK * live.totals / self._longest[live.rows]
        found = np.zeros(len(self._best), dtype=bool)
        found[live.rows[highest >= self._best[live.rows, 0]]] = True
        return found


def collect(
    live: Sequence[Grown], ended: Sequence[Grown], sentences: int, length_penalty: float
) -> list[list[Hypothesis]]:
    """Trace all finished hypotheses back, and rank those of each sentence."""
    pointers = np.concatenate([step.parents for step in ended])
    totals = np.concatenate([step.totals for step in ended]).tolist()
    rows = np.concatenate([step.rows for step in ended]).tolist()
    counts = [len(step.rows) for step in ended]
    starts = np.cumsum([0, *counts])
    # Finished hypotheses are sorted by length, so those longer than a step are a suffix.
    words = np.zeros((len(rows), len(live)), dtype=np.int64)
    sums = np.zeros((len(rows), len(live) + 1))  # of the words before each, the end's total last
    lengths = np.repeat(np.arange(len(counts)), counts)
    sums[np.arange(len(rows)), lengths + 1] = totals
    for step in range(len(live) - 1, 0, -1):
        longer = slice(starts[step], None)
        before = live[step - 1]
        words[longer, step - 1] = before.tokens[pointers[longer]]
        sums[longer, step] = before.totals[pointers[longer]]
        pointers[longer] = before.parents[pointers[longer]]
    each = np.diff(sums, axis=1)
    found: list[list[Hypothesis]] = [[] for _ in range(sentences)]
    for index, (row, length, total) in enumerate(zip(rows, lengths.tolist(), totals, strict=True)):
        score = total / (length + 1) ** length_penalty
        steps = each[index, : length + 1].tolist()
        found[row].append(Hypothesis(words[index, :length].tolist(), score, total, steps))
    for hypotheses in found:
        if not hypotheses:
            raise RunError("the model gives every continuation the probability 0; it is broken")
        hypotheses.sort(key=lambda hypothesis: -hypothesis.score)
    return found
