"""Text and words of what a search has found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from nmtflex.config import SearchConfig
from nmtflex.decoding.demands import Demand, met
from nmtflex.decoding.ensemble import Ids
from nmtflex.decoding.links import strongest, word_weights
from nmtflex.decoding.matching import linked_words
from nmtflex.decoding.search import Hypothesis
from nmtflex.decoding.traces import Numbers, SentenceTrace, most_attended
from nmtflex.decoding.translation import Translation
from nmtflex.text.edges import Edges
from nmtflex.text.pipeline import TextPipeline
from nmtflex.text.vocabulary import UNK_ID

Filled = list[list[str]]  # what each word of the tokens becomes


class Looks(NamedTuple):
    """What attention looked at."""

    trace: SentenceTrace | None  # to keep, and to replace unknown words by
    weights: Numbers | None  # to align words by


class Terms(NamedTuple):
    """What a translation must contain, and how to find where it lacks it."""

    demand: Demand | None
    weights: Numbers | None  # of attention, if it lacks a term


class Wording:
    """Makes translations of hypotheses.

    Args:
        pipeline: Of the run.
        search: Says what becomes of unknown words.
        edges: Of the words of the target side.
    """

    def __init__(self, pipeline: TextPipeline, search: SearchConfig, edges: Edges) -> None:
        self._pipeline = pipeline
        self._search = search
        self._edges = edges

    def translation(
        self, line: str, hypothesis: Hypothesis, looks: Looks, terms: Terms
    ) -> Translation:
        """Return the translation of a raw line."""
        target, ids = self._pipeline.target, hypothesis.ids
        filled, join, cuts = self._filled(line, ids, looks.trace)
        if terms.demand is None:
            text = join(filled)
        else:
            own = terms.demand, terms.weights
            text, filled = met(target, self._edges, ids, *own, filled, join, line)
            cuts = [*map(len, filled)]
        words = [word for parts in filled for word in parts]
        tokens = [target.vocabulary.token(token) for token in ids]
        by_word = word_weights(self._pipeline, line, tokens, words, looks.weights, cuts)
        return Translation(
            text=text,
            tokens=tokens,
            words=words,
            score=hypothesis.score,
            log_probability=hypothesis.log_probability,
            trace=looks.trace,
            ids=ids,
            cuts=cuts,
            attended=strongest(by_word),
            links=linked_words(by_word),
            log_probabilities=hypothesis.log_probabilities,
        )

    def _filled(
        self, line: str, ids: Ids, trace: SentenceTrace | None
    ) -> tuple[Filled, Callable[[Filled], str], list[int]]:
        """Return words, what joins them, and how many each decoded word became."""
        target, unk = self._pipeline.target, self._search.unk
        replaces = self._search.replace_unk and UNK_ID in ids
        if not (replaces and trace and trace.weights is not None):
            return [[word] for word in target.decode_words(ids, unk)], target.join_filled, []
        attended = self._pipeline.source.attended_words(line)
        places = most_attended(trace.weights[: len(ids)])
        filled = target.fill_unknown(ids, [attended[place] for place in places], unk)
        join = partial(self._pipeline.join_replaced, line, ids, places.tolist())
        return filled, join, [*map(len, filled)]
