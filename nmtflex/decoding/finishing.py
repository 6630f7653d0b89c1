"""What hypotheses become: translations, with what attention looked at, and scores of words."""

from __future__ import annotations

from collections.abc import Sequence

from nmtflex.config import SearchConfig
from nmtflex.decoding.asked import Lines
from nmtflex.decoding.confidence import Confidence
from nmtflex.decoding.demands import Demand, lacking
from nmtflex.decoding.ensemble import Encoded, Ids, StepModel
from nmtflex.decoding.links import aligned, mean_weights
from nmtflex.decoding.search import Hypothesis
from nmtflex.decoding.traces import Numbers, Origin, SentenceTrace, trace_pairs
from nmtflex.decoding.translation import Translation
from nmtflex.decoding.word_features import WordFeatures
from nmtflex.decoding.wording import Looks, Terms, Wording
from nmtflex.text.edges import Edges
from nmtflex.text.pipeline import TextPipeline

Found = Sequence[Sequence[Hypothesis]]  # of each line, the best first
Pairs = Sequence[tuple[Ids, Ids]]  # source and target ids


class Finishing:
    """Makes translations of what a search has found.

    Args:
        models: That have searched.
        pipeline: Theirs.
        search: Options of the search.
        size: Sentences that are decoded together.
        edges: Of the words of the target side.
    """

    def __init__(
        self,
        models: Sequence[StepModel],
        pipeline: TextPipeline,
        search: SearchConfig,
        size: int,
        edges: Edges,
    ) -> None:
        self._models, self._pipeline, self._search, self._size = models, pipeline, search, size
        self._edges = edges

    def translations(
        self,
        lines: Lines,
        sources: Sequence[Ids],
        found: Found,
        confidence: Confidence | None,
        encoded: Encoded | None = None,
    ) -> list[list[Translation]]:
        """Return the translations of each line, the best first.

        Args:
            lines: What was asked.
            sources: Ids of each line.
            found: Hypotheses of each line, no more than were asked for.
            confidence: Scores words, if they are to be scored.
            encoded: The sources, if they have tokens.
        """
        weighing = lines.align or (lines.word_scores and aligned(self._models))
        for_terms = self._weights_for_terms(sources, lines.demands, found, encoded)
        most = self._search.longest_outputs(map(len, sources), lines.limits)
        # Unknown words may be replaced in any of them.
        traced = lines.best if self._search.replace_unk else int(lines.trace)
        places = [
            (line, rank)
            for line, hypotheses in enumerate(found)
            for rank in range(len(hypotheses[: lines.best if weighing else traced]))
        ]
        pairs, origin = _pairs(sources, found, places, encoded)
        traces = self.traces(pairs, origin)
        weights = self.weights(pairs, traces, origin) if weighing else [None] * len(pairs)
        looked = iter(zip(traces, weights, strict=True))
        wording = Wording(self._pipeline, self._search, self._edges)

        def text(index: int, hypothesis: Hypothesis, rank: int) -> Translation:
            seen, weights = next(looked) if weighing or rank < traced else (None, None)
            line, shown = lines.texts[index], seen if rank < traced else None
            terms = Terms(lines.demands[index], for_terms.get((index, rank)))
            looks = Looks(shown, weights if lines.align else None)
            one = wording.translation(line, hypothesis, looks, terms)
            return confidence.scored(one, self.features(line, one, weights)) if confidence else one

        unread = map(self._pipeline.source.unread, lines.texts)
        return [
            [
                text(index, hypothesis, rank)._replace(
                    unread=left, truncated=len(hypothesis.ids) >= longest
                )
                for rank, hypothesis in enumerate(hypotheses)
            ]
            for index, (hypotheses, left, longest) in enumerate(
                zip(found, unread, most, strict=True)
            )
        ]

    def _weights_for_terms(
        self,
        sources: Sequence[Ids],
        demands: Sequence[Demand | None],
        found: Found,
        encoded: Encoded | None,
    ) -> dict[tuple[int, int], Numbers | None]:
        """Return, by line and rank, attention weights of translations that lack a term."""
        if not any(demands) or not aligned(self._models):
            return {}
        places = list(lacking(self._pipeline.target, self._edges, demands, found))
        pairs, origin = _pairs(sources, found, places, encoded)
        return dict(zip(places, self.weights(pairs, None, origin), strict=True))

    def pairs(self, lines: Sequence[str], translations: Sequence[Translation]) -> Pairs:
        """Return the ids of lines and of one translation of each; ValueError if one lacks any."""
        if len(translations) != len(lines):
            raise ValueError(
                f"there are {len(lines)} lines, and {len(translations)} translations; give one each"
            )
        sources = map(self._pipeline.source.encode, lines)
        return [(source, list(one.ids)) for source, one in zip(sources, translations, strict=True)]

    def traces(self, pairs: Pairs, origin: Origin | None = None) -> list[SentenceTrace | None]:
        """Return what the first model looked at in each pair; None where the source is empty."""
        own = origin and origin._replace(encoded=origin.encoded.of(0))
        return trace_pairs(self._models[0], pairs, self._size, own)

    def weights(
        self,
        pairs: Pairs,
        first: Sequence[SentenceTrace | None] | None = None,
        origin: Origin | None = None,
    ) -> list[Numbers | None]:
        """Return mean attention weights of each pair.

        Args:
            pairs: Source and target ids.
            first: The traces of the first model, if they are there.
            origin: Where the sources have been encoded, if they have.
        """
        return mean_weights(self._models, pairs, self._size, first, origin)

    def features(
        self, line: str, translation: Translation, weights: Numbers | None
    ) -> WordFeatures:
        """Return what the words' scores are computed from."""
        ids, each = translation.ids, translation.log_probabilities
        return WordFeatures(self._pipeline, line, ids, each, weights)


def _pairs(
    sources: Sequence[Ids],
    found: Found,
    places: Sequence[tuple[int, int]],
    encoded: Encoded | None,
) -> tuple[Pairs, Origin | None]:
    """Return the hypotheses at lines and ranks with their sources, and where these are encoded."""
    pairs = [(sources[line], found[line][rank].ids) for line, rank in places]
    return pairs, encoded and Origin(encoded, [line for line, _ in places])
