"""Raw lines in, raw lines out: what ``nmtflex translate`` and the Python API share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from nmtflex.config import (
    BatchConfig,
    Config,
    DeviceConfig,
    SearchConfig,
    ThresholdConfig,
    nearest,
    options_of,
)
from nmtflex.decoding.batching import batches
from nmtflex.decoding.ensemble import Ids, StepModel
from nmtflex.decoding.forks import check_not_forked, watch_forks
from nmtflex.decoding.search import Hypothesis, beam_search
from nmtflex.decoding.tally import Tally
from nmtflex.decoding.traces import SentenceTrace, trace_pairs
from nmtflex.errors import OptionError
from nmtflex.model.inference import make_ready
from nmtflex.runs.run import Run, load_run
from nmtflex.runs.threshold import run_threshold, run_thresholds, under
from nmtflex.text.pipeline import TextPipeline
from nmtflex.text.vocabulary import UNK_ID

Group = TypeVar("Group", bound=Config)

WARM_UP = 64  # sentences that are translated before a clock starts


class Translation(NamedTuple):
    """One translation of a line, with its tokens and scores.

    Attributes:
        text: The translation as raw text.
        tokens: The model's tokens (subwords with BPE), ``<unk>`` for unknown ones.
        words: The words of the target tokenizer, after ``replace_unk``.
        score: ``log_probability`` / length ** ``length_penalty``, by which the search ranks.
        log_probability: Natural logarithm of the probability, EOS included.
        trace: What attention looked at, if requested: numpy arrays, see docs/formats.md.
        ids: Vocabulary ids of ``tokens``.
        cuts: How many of ``words`` each decoded word became; empty if each became one.
        unread: Number of source tokens beyond ``max_source_length``, which were not translated.
    """

    text: str
    tokens: list[str]
    words: list[str]
    score: float
    log_probability: float
    trace: SentenceTrace | None
    ids: Sequence[int] = ()
    cuts: Sequence[int] = ()
    unread: int = 0


class Translator:
    """Translates raw lines with one model, or with several models as an ensemble.

    One from ``nmtflex.load`` can be pickled and copied: the copy opens the run folder again. In a
    process forked after loading it does not work; start processes by "spawn".

    Args:
        models: Models in evaluation mode that share a vocabulary. Traces come from the first one.
        pipeline: The text pipeline that the models were trained with.
        search: Options of the beam search.
        batch: How many sentences are decoded together. It affects speed only.
    """

    def __init__(
        self,
        models: Sequence[StepModel],
        pipeline: TextPipeline,
        search: SearchConfig | None = None,
        batch: BatchConfig | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.search = search or SearchConfig()
        self.batch = batch or BatchConfig()
        self._models = models

    def decoding(self, models: Sequence[StepModel]) -> Translator:
        """Return a translator of other models, with the same pipeline and options."""
        return Translator(models, self.pipeline, self.search, self.batch)

    def translate(self, lines: Iterable[str]) -> list[str]:
        """Return the best translation of each line, in order.

        A line without words gives an empty string. A line longer than ``max_source_length`` is
        truncated there, with a warning.

        Args:
            lines: Raw lines: a list, a generator, an open file. All are read first.

        Raises:
            TypeError: ``lines`` is a single string, or does not consist of strings.
            RuntimeError: This process was forked after the run was loaded.
        """
        lines = _checked(lines)
        best = [translations[0] for translations in self.n_best(lines, 1)]
        for index, translation in enumerate(best):
            if translation.unread:
                limit = self.search.max_source_length
                warnings.warn(
                    f"line {index} (from 0) has {limit + translation.unread:,} tokens; the first "
                    f"{limit:,} were translated (max_source_length)",
                    stacklevel=2,
                )
        return [translation.text for translation in best]

    def n_best(
        self, lines: Iterable[str], count: int, tally: Tally | None = None, trace: bool = False
    ) -> list[list[Translation]]:
        """Return the ``count`` best translations of each line, best first.

        A line may have fewer, and never has more than the beam size.

        Args:
            lines: Raw lines.
            count: Number of translations for each line.
            tally: If given, counts the score computations of attention (CPS).
            trace: Whether the best translation of each line carries a ``trace``.

        Raises:
            TypeError: ``lines`` is a single string, or does not consist of strings.
            RuntimeError: This process was forked after the run was loaded.
        """
        lines = _checked(lines)
        sources = [self.pipeline.source.encode(line) for line in lines]
        found = [best[:count] for best in self.translate_ids(sources, tally, count)]
        # An unknown word may be replaced in any of them.
        traced = count if self.search.replace_unk else int(trace)
        traces = iter(
            self._trace([
                (source, hypothesis.ids)
                for source, hypotheses in zip(sources, found, strict=True)
                for hypothesis in hypotheses[:traced]
            ])
        )
        unread = map(self.pipeline.source.unread, lines)
        return [
            [
                self._text(line, hypothesis, next(traces) if rank < traced else None)._replace(
                    unread=left
                )
                for rank, hypothesis in enumerate(hypotheses)
            ]
            for line, hypotheses, left in zip(lines, found, unread, strict=True)
        ]

    def traces(
        self, lines: Sequence[str], translations: Sequence[Translation]
    ) -> list[SentenceTrace | None]:
        """Return a ``Translation.trace`` for each line; None where the source is empty.

        Args:
            lines: Raw lines.
            translations: One translation of each line, from ``n_best``.
        """
        sources = map(self.pipeline.source.encode, lines)
        return self._trace([
            (source, list(translation.ids))
            for source, translation in zip(sources, translations, strict=True)
        ])

    def _trace(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[SentenceTrace | None]:
        return trace_pairs(self._models[0], pairs, self.batch.batch_sentences)

    def translate_ids(
        self,
        sources: Sequence[Ids],
        tally: Tally | None = None,
        count: int | None = None,
        limits: Sequence[int] | None = None,
        done: Callable[[int], None] = lambda _sentences: None,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses for sentences given as vocabulary ids, best first.

        A hypothesis has ids, score and log-probability. A sentence without tokens has a single one,
        empty and with score 0.

        Args:
            sources: Vocabulary ids of each sentence.
            tally: If given, counts the score computations of attention (CPS).
            count: Number of hypotheses for each sentence; None for the whole beam.
            limits: Maximum tokens of each translation, if lower than the search options allow.
            done: Called after each batch with its number of sentences; it may raise.

        Raises:
            RunError: The model is broken and predicts NaN.
            RuntimeError: This process was forked after the run was loaded.
        """
        check_not_forked()
        found = [[Hypothesis([], 0.0, 0.0)] for _ in sources]
        lengths = [len(ids) for ids in sources]
        for batch in batches(lengths, self.batch.batch_sentences, self.search.beam):
            chosen = [sources[index] for index in batch]
            most = None if limits is None else [limits[index] for index in batch]
            hypotheses = beam_search(self._models, chosen, self.search, tally, count, most)
            done(len(batch))
            for index, best in zip(batch, hypotheses, strict=True):
                found[index] = best
        return found

    def _text(self, line: str, hypothesis: Hypothesis, trace: SentenceTrace | None) -> Translation:
        target, ids = self.pipeline.target, hypothesis.ids
        if self.search.replace_unk and UNK_ID in ids and trace and trace.weights is not None:
            attended = self.pipeline.source.attended_words(line)
            places = trace.weights[: len(ids)].argmax(1)
            filled = target.fill_unknown(
                ids, [attended[place] for place in places], self.search.unk
            )
            words, cuts = [word for parts in filled for word in parts], [*map(len, filled)]
            text = self.pipeline.join_replaced(line, ids, places.tolist(), filled)
        else:
            words, cuts = target.decode_words(ids, self.search.unk), []
            text = target.tokenizer.detokenize(words)
        return Translation(
            text=text,
            tokens=[target.vocabulary.token(token) for token in ids],
            words=words,
            score=hypothesis.score,
            log_probability=hypothesis.log_probability,
            trace=trace,
            ids=ids,
            cuts=cuts,
        )


def _checked(lines: Any) -> list[str]:
    """Return lines as a list.

    Raises:
        TypeError: They are one string, or hold something else than strings.
    """
    if isinstance(lines, str):
        raise TypeError("translate takes a list of lines, not one string")
    if isinstance(lines, bytes | bytearray) or not isinstance(lines, Iterable):
        raise TypeError(f"translate takes a list of lines, not {type(lines).__name__}")
    found = list(lines)
    for index, line in enumerate(found):
        if not isinstance(line, str):
            remedy = "; decode it" if isinstance(line, bytes | bytearray) else ""
            raise TypeError(
                f"translate takes lines of str; line {index} (from 0) is of "
                f"{type(line).__name__}{remedy}"
            )
    return found


class LoadedTranslator(Translator):
    """A translator of run folders, which a copy of it opens anew.

    What a frozen model holds cannot be copied. So ``copy.deepcopy`` and ``pickle`` keep which runs
    were opened, and with which options; the runs must still be there.
    """

    reopen: tuple[Any, ...] = ()  # arguments of ``open_ensemble``

    def __reduce__(self) -> tuple[Callable[..., Translator], tuple[Any, ...]]:
        """Return how a copy is made."""
        return _open_again, self.reopen


def _open_again(*arguments: Any) -> Translator:
    return open_ensemble(*arguments).translator


class Opened(NamedTuple):
    """A run, or an ensemble of some, ready to translate."""

    run: Run  # of an ensemble the first
    translator: Translator
    tau: float | None  # threshold, where one was given


def open_translator(
    path: Path,
    search: SearchConfig,
    threshold: ThresholdConfig,
    batch: BatchConfig,
    device: DeviceConfig,
) -> Opened:
    """Open a run and check that its attention can do what the options ask.

    Raises:
        OptionError: It cannot, or ``--int8`` is asked for where there is none.
        RunError: The folder is no run, or one of a newer format.
    """
    watch_forks()
    check_not_forked()
    run = load_run(path, device)
    tau = run_threshold(run, threshold.tau)
    translator = _translator([run], [tau], search, batch)
    translator.reopen = ([path.resolve()], search, threshold, batch, device)
    return Opened(run, translator, tau)


def open_ensemble(
    paths: Sequence[Path],
    search: SearchConfig,
    threshold: ThresholdConfig,
    batch: BatchConfig,
    device: DeviceConfig,
) -> Opened:
    """Open runs that translate together, by the average of their probabilities.

    Traces, and with them replaced unknown words, are the first run's; a threshold is for those that
    have a penalty; the count of score computations is the sum over the runs.

    Args:
        paths: Run folders, at least one; one is an ensemble of itself.
        search: Options of the beam search.
        threshold: That of flexible attention; ``auto`` is each run's own.
        batch: How many sentences are decoded together.
        device: Where all of them are.

    Raises:
        OptionError: The runs differ in vocabulary, tokenizer or BPE, or the first one's attention
            cannot do what the options ask.
        RunError: A folder is no run, or one of a newer format.
    """
    first, *others = paths
    if not others:
        return open_translator(first, search, threshold, batch, device)
    watch_forks()
    check_not_forked()
    runs = [load_run(path, device) for path in paths]
    for run in runs[1:]:
        if what := run.pipeline.difference(runs[0].pipeline):
            raise OptionError(
                f"{run.folder.path} has another {what} than {first}, and the runs of an ensemble "
                f"need the same; train them on one prepared folder, or preprocess with "
                f"--like {first}"
            )
    taus = run_thresholds(runs, threshold.tau)
    tau = next((value for value in taus if value is not None), None)
    translator = _translator(runs, taus, search, batch)
    resolved = [path.resolve() for path in paths]
    translator.reopen = (resolved, search, threshold, batch, device)
    return Opened(runs[0], translator, tau)


def _translator(
    runs: Sequence[Run], taus: Sequence[float | None], search: SearchConfig, batch: BatchConfig
) -> LoadedTranslator:
    """Make the translator of opened runs."""
    first = runs[0]
    if search.replace_unk and not first.model.aligned:
        raise OptionError(
            f"--replace-unk needs weights over source positions, and {first.folder.path} has "
            f"{first.model_config.attention.kind} attention"
        )
    for run in runs:
        make_ready(run.model, batch.int8)
    first.pipeline.source.longest = search.max_source_length or None
    models = [under(run, tau) for run, tau in zip(runs, taus, strict=True)]
    return LoadedTranslator(models, first.pipeline, search, batch)


def load(run: str | Path | Sequence[str | Path], **options: Any) -> Translator:
    """Open a run for translation, or several runs as an ensemble.

    Args:
        run: Run folder that ``nmtflex train`` wrote. A sequence of folders is an ensemble, which
            averages the probabilities of its runs; the runs must share tokenizer, BPE and
            vocabulary.
        **options: Those of ``nmtflex translate``, with underscores. Search: ``beam``,
            ``length_penalty``, ``max_length`` and ``max_source_length`` (which limit the time of a
            line), ``replace_unk``, ``unk``. Flexible attention: ``tau`` (a number, "inf", "auto").
            Speed: ``batch_sentences``, ``int8``, ``device``, ``dtype``, ``threads``.

    Returns:
        A translator; it needs no file outside the run folder.

    Raises:
        OptionError: An option is unknown or has an invalid value, the list of runs is empty, or the
            runs do not match each other.
        RunError: The folder is not a run, is damaged, or has a newer format.
    """
    search = _take(SearchConfig, options)
    if options.get("tau") is not None:  # 1.38 as well as "1.38"
        options["tau"] = str(options["tau"])
    threshold = _take(ThresholdConfig, options)
    batch = _take(BatchConfig, options)
    device = _take(DeviceConfig, options)
    if options:
        name = min(options)
        groups = (SearchConfig, ThresholdConfig, BatchConfig, DeviceConfig)
        known = [key for group in groups for key in options_of(group)]
        raise OptionError(f"load: unknown option {name!r}{nearest(name, known)}")
    runs = [run] if isinstance(run, str | Path) else run
    if not runs:
        raise OptionError("load: there is no run in the list; name at least one")
    return open_ensemble(list(map(Path, runs)), search, threshold, batch, device).translator


def _take(group: type[Group], options: dict[str, Any]) -> Group:
    """Build an option group of the options that belong to it, and take them out."""
    names = [name for name in options_of(group) if name in options]
    return group.from_dict({name: options.pop(name) for name in names})
