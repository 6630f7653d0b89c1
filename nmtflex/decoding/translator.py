"""Raw lines in, raw lines out: what ``nmtflex translate`` and the Python API share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import NamedTuple, Unpack

from nmtflex.config import BatchConfig, SearchConfig, ThresholdConfig
from nmtflex.config.decoding import LOOP_TOKENS
from nmtflex.decoding.asked import Asked, Lines
from nmtflex.decoding.batching import batches, checked
from nmtflex.decoding.calls import Calls
from nmtflex.decoding.confidence import Confidence, no_confidence
from nmtflex.decoding.constrained import constrained_search
from nmtflex.decoding.constraints import FREE, Constraints
from nmtflex.decoding.cut_off import looping
from nmtflex.decoding.demands import demands_of
from nmtflex.decoding.ensemble import Encoded, Ids, StepModel, encode
from nmtflex.decoding.finishing import Finishing
from nmtflex.decoding.links import align_pairs, aligned
from nmtflex.decoding.options import Options
from nmtflex.decoding.paragraphs import joined
from nmtflex.decoding.search import Hypothesis, beam_search
from nmtflex.decoding.tally import Tally
from nmtflex.decoding.traces import Numbers, SentenceTrace
from nmtflex.decoding.translation import Translation
from nmtflex.decoding.turns import in_turn
from nmtflex.decoding.word_features import WordFeatures
from nmtflex.errors import OptionError
from nmtflex.ops.heap import give_back
from nmtflex.text.edges import Edges
from nmtflex.text.paragraphs import ParagraphSplitter
from nmtflex.text.pipeline import TextPipeline

WARM_UP = 64  # sentences that are translated before a clock starts


class Searched(NamedTuple):
    """A batch of sentences."""

    places: Sequence[int]  # among all
    found: list[list[Hypothesis]]  # of each
    encoded: Encoded | None  # None: they have no tokens


class Translator(Calls):
    """Translates raw lines with one model, or with several models as an ensemble.

    Any number of threads may use it; they compute in turns, a batch each. A with block closes it at
    the end, which frees the model.

    One from ``nmtflex.load`` can be pickled and copied: the copy opens the run folder again. It
    does not work in a process forked after loading; start processes with "spawn".

    Args:
        models: Models in evaluation mode that share a vocabulary. Traces come from the first one.
        pipeline: The text pipeline that the models were trained with.
        search: Options of the beam search.
        batch: How many sentences are decoded together; affects only speed.
        paragraphs: Splits each line into what is translated by itself; None leaves lines whole.
        confidence: Returns what scores words; see ``load_confidence``.
    """

    def __init__(
        self,
        models: Sequence[StepModel],
        pipeline: TextPipeline,
        search: SearchConfig | None = None,
        batch: BatchConfig | None = None,
        paragraphs: ParagraphSplitter | None = None,
        confidence: Callable[[], Confidence] = no_confidence,
    ) -> None:
        self.pipeline = pipeline
        self.search = search or SearchConfig()
        self.batch = batch or BatchConfig()
        super().__init__(Options(self.search, ThresholdConfig(), self.batch))
        self._models = list(models)
        self._paragraphs = paragraphs
        self._confidence = confidence

    @property
    def aligned(self) -> bool:
        """Whether a model has weights over source positions, to align words by."""
        return aligned(self._models)

    @property
    def splitter(self) -> ParagraphSplitter | None:
        """What splits lines into sentences; None leaves them whole."""
        return self._paragraphs

    def unsplit(self) -> Translator:
        """Return a translator of the same models that leaves lines whole."""
        return Translator(self._models, self.pipeline, self.search, self.batch)

    @cached_property
    def _edges(self) -> Edges:
        return Edges(self.pipeline.target)

    @property
    def _finishing(self) -> Finishing:
        size = self.batch.batch_sentences
        return Finishing(self._models, self.pipeline, self.search, size, self._edges)

    def decoding(self, models: Sequence[StepModel]) -> Translator:
        """Return a translator of other models, with the same pipeline and options.

        Args:
            models: In evaluation mode, with the same vocabulary.
        """
        parts = self.pipeline, self.search, self.batch, self._paragraphs, self._confidence
        return Translator(models, *parts)

    def load_confidence(self) -> Confidence:
        """Return what scores words, read from the run folder once.

        Raises:
            RunError: The run has none, or a damaged or outdated one.
            OptionError: The run was opened to show a single layer or head.
        """
        return self._confidence()

    def _under(self, options: Options) -> Translator:
        search, threshold, batch = options[:3]
        own = self._options
        if (search, threshold, batch) == (own.search, own.threshold, own.batch):
            return self
        view = self.decoding(self._models_for(search, threshold))
        view.search, view.batch = search, batch
        view._lifetime, view.threads = self._lifetime, self.threads
        return view

    def _models_for(self, search: SearchConfig, threshold: ThresholdConfig) -> list[StepModel]:
        """Return the models as they decode under the options of a call.

        Raises:
            OptionError: They cannot do what the options ask.
        """
        if threshold != self._options.threshold:
            raise OptionError("tau and reuse_below need a translator from nmtflex.load")
        return self._models

    def _free(self) -> None:
        self._models = []
        give_back()

    def warm_up(self, lines: Sequence[str]) -> None:
        """Translate a few lines, so that one-time loading is over when a clock starts.

        Args:
            lines: Raw lines, of which the first 64 are translated.
        """
        self.n_best(lines[:WARM_UP], 1)

    def n_best(
        self,
        lines: Iterable[str],
        count: int,
        tally: Tally | None = None,
        **asked: Unpack[Asked],
    ) -> list[list[Translation]]:
        """Return the ``count`` best translations of each line, best first.

        This is ``translate_batch`` with the options of loading. A line may have fewer, and never
        has more than the beam size. If lines are split into sentences, a line has one translation,
        without a trace.

        Args:
            lines: Raw lines.
            count: Number of translations for each line.
            tally: If given, counts the score computations of attention (CPS).
            **asked: What else is asked; see ``Asked``.

        Raises:
            TypeError: ``lines`` or ``prefixes`` is a single string, or does not consist of strings.
            OptionError: Lines are split into sentences, and ``count`` is more than 1, or ``trace``
                or ``align`` is set, or there are prefixes.
            ValueError: It is to be aligned, and no model has weights over source positions; or
                there are not as many prefixes as lines.
            RunError: Words are to be scored, and the run has not been calibrated.
            RuntimeError: The translator is closed, or this process was forked after it was loaded.
        """
        texts = list(checked(lines))
        with self._call():
            if self._paragraphs is None:
                return self._n_best(self._asked(texts, count, asked), tally)
            return self._split(self._paragraphs, texts, count, asked, tally)

    def _asked(self, texts: Sequence[str], count: int, asked: Asked) -> Lines:
        return Lines(
            texts,
            demands_of(self.pipeline, texts, asked.get("glossary"), asked.get("prefixes")),
            asked.get("limits"),
            count,
            *(bool(asked.get(name)) for name in ("trace", "align", "word_scores")),
        )

    def _split(
        self,
        paragraphs: ParagraphSplitter,
        lines: Sequence[str],
        count: int,
        asked: Asked,
        tally: Tally | None,
    ) -> list[list[Translation]]:
        """Return the translation of each line, joined from those of its sentences."""
        shown = asked.get("trace") or asked.get("align")
        if count > 1 or shown or asked.get("prefixes") is not None:
            raise OptionError(
                "a line that is split into sentences has one translation, without a trace, links "
                "or a prefix; load the run without split"
            )
        split = list(map(paragraphs.split, lines))
        units = [unit for paragraph in split for unit in paragraph.units]
        whole = self._asked(units, 1, asked)
        if whole.limits is not None:
            each = zip(whole.limits, split, strict=True)
            limits = [limit for limit, paragraph in each for _ in paragraph.units]
            whole = whole._replace(limits=limits)
        best = [translation for (translation,) in self._n_best(whole, tally)]
        return [[one] for one in joined(paragraphs, split, best, self.search)]

    def _n_best(self, lines: Lines, tally: Tally | None) -> list[list[Translation]]:
        """Return the best translations of each line."""
        confidence = self.load_confidence() if lines.word_scores else None
        sources = [self.pipeline.source.encode(line) for line in lines.texts]
        # Nothing is demanded of an empty line.
        demands = zip(sources, lines.demands, strict=True)
        lines = lines._replace(demands=[(ids and demand) or None for ids, demand in demands])
        constraints = [
            demand and demand.constraints(self.pipeline.target, self.aligned)
            for demand in lines.demands
        ]
        finishing = self._finishing
        found: list[list[Translation]] = [[] for _ in sources]
        traced = self.search.replace_unk or lines.traced
        searched = self._searched(sources, tally, lines.best, lines.limits, constraints, traced)
        for batch in searched:
            own = [sources[place] for place in batch.places]
            best = [hypotheses[: lines.best] for hypotheses in batch.found]
            asked = lines.at(batch.places), own, best, confidence, batch.encoded
            for place, translations in zip(
                batch.places, finishing.translations(*asked), strict=True
            ):
                found[place] = translations
        return found

    def traces(
        self, lines: Sequence[str], translations: Sequence[Translation]
    ) -> list[SentenceTrace | None]:
        """Return a ``Translation.trace`` for each line; None where the source is empty.

        Args:
            lines: Raw lines.
            translations: One translation of each line, from ``n_best``.

        Raises:
            ValueError: There are not as many translations as lines.
        """
        pairs = self._finishing.pairs(lines, translations)
        with self._call():
            return self._finishing.traces(pairs)

    def word_features(
        self, lines: Sequence[str], translations: Sequence[Translation]
    ) -> list[WordFeatures]:
        """Return what word scores are computed from.

        Args:
            lines: Raw lines.
            translations: One translation of each line, as for ``traces``.
        """
        pairs = self._finishing.pairs(lines, translations)
        weights: Sequence[Numbers | None] = [None] * len(pairs)
        with self._call():
            if self.aligned:
                weights = self._finishing.weights(pairs)
            return list(map(self._finishing.features, lines, translations, weights))

    def align(self, pairs: Sequence[tuple[str, str]]) -> list[list[int]]:
        """Align given translations; see ``Translation.attended``.

        Args:
            pairs: Raw source and target lines.

        Returns:
            For each word of a target the number of the source word it is linked to.

        Raises:
            TypeError: A pair is not of two strings.
            ValueError: No model has weights over source positions.
        """
        with self._call():
            return align_pairs(self._models, self.pipeline, pairs, self.batch.batch_sentences)

    def translate_ids(
        self,
        sources: Sequence[Ids],
        tally: Tally | None = None,
        count: int | None = None,
        limits: Sequence[int] | None = None,
        done: Callable[[int], None] = lambda _sentences: None,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses for sentences given as vocabulary ids, best first.

        A hypothesis has ids, score and log-probabilities. A sentence without tokens has a single
        one, empty and with score 0.

        Args:
            sources: Vocabulary ids of each sentence.
            tally: If given, counts the score computations of attention (CPS).
            count: Number of hypotheses for each sentence; None for the whole beam.
            limits: Maximum tokens of each translation, if lower than the search options allow.
            done: Called after each batch with its number of sentences; may raise.

        Raises:
            RunError: The model is broken and predicts NaN.
            RuntimeError: The translator is closed, or this process was forked after it was loaded.
        """
        best: list[list[Hypothesis]] = [[] for _ in sources]
        free = [None] * len(sources)
        with self._call():
            for places, found, encoded in self._searched(sources, tally, count, limits, free):
                for place, hypotheses in zip(places, found, strict=True):
                    best[place] = hypotheses
                if encoded:
                    done(len(places))
        return best

    def _searched(
        self,
        sources: Sequence[Ids],
        tally: Tally | None,
        count: int | None,
        limits: Sequence[int] | None,
        constraints: Sequence[Constraints | None],
        traced: bool = False,
    ) -> Iterator[Searched]:
        """Yield batches of sentences with what was found, those with constraints at the end."""
        empty = [place for place, ids in enumerate(sources) if not ids]
        yield Searched(empty, [[Hypothesis([], 0.0, 0.0)] for _ in empty], None)
        size, beam = self.batch.batch_sentences, self.search.beam
        for bound in (False, True):
            of_kind = [bool(one) == bound for one in constraints]
            lengths = [len(ids) * one for ids, one in zip(sources, of_kind, strict=True)]
            for batch in batches(lengths, size, beam):
                chosen = [sources[place] for place in batch]
                search = partial(
                    self._found,
                    chosen,
                    (tally, count, None if limits is None else [limits[place] for place in batch]),
                    [constraints[place] or FREE for place in batch] if bound else None,
                    traced,
                )
                yield Searched(batch, *in_turn(search, self._models[0].device))

    def _found(
        self,
        sources: Sequence[Ids],
        asked: tuple[Tally | None, int | None, Sequence[int] | None],
        constraints: Sequence[Constraints] | None,
        traced: bool,
    ) -> tuple[list[list[Hypothesis]], Encoded]:
        """Encode and search a batch; with ``retry_loops`` search loops again.

        Computations a step are those of the first search, which differ little in the second.
        """
        _, count, limits = asked
        encoded = encode(self._models, sources, traced)
        found = self._search(encoded, self.search, asked, constraints)
        if not self.search.retry_loops:
            return found, encoded
        most = self.search.longest_outputs(map(len, sources), limits)
        best = [hypotheses[0].ids for hypotheses in found]
        loops = [at for at, ids in enumerate(best) if len(ids) >= most[at] and looping(ids)]
        if loops:
            again = self._search(
                encode(self._models, [sources[at] for at in loops]),
                replace(self.search, no_repeat_ngram=LOOP_TOKENS, retry_loops=False),
                (None, count, limits and [limits[at] for at in loops]),
                constraints and [constraints[at] for at in loops],
            )
            for at, hypotheses in zip(loops, again, strict=True):
                found[at] = hypotheses
        return found, encoded

    def _search(
        self,
        encoded: Encoded,
        config: SearchConfig,
        asked: tuple[Tally | None, int | None, Sequence[int] | None],
        constraints: Sequence[Constraints] | None,
    ) -> list[list[Hypothesis]]:
        """Return what one search of a batch finds."""
        given = self._models, encoded, config, *asked
        if constraints is None:
            return beam_search(*given)
        return constrained_search(*given, constraints=constraints, edges=self._edges)
