"""Opening runs for translation: one, or several as an ensemble."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch

from nmtflex.config import (
    BatchConfig,
    Config,
    DeviceConfig,
    ParagraphConfig,
    SearchConfig,
    ShownConfig,
    ThresholdConfig,
)
from nmtflex.decoding.confidence import Confidence, read_confidence
from nmtflex.decoding.ensemble import StepModel
from nmtflex.decoding.forks import check_not_forked, watch_forks
from nmtflex.decoding.options import Options, refuse_rest, take
from nmtflex.decoding.translator import Translator
from nmtflex.errors import OptionError
from nmtflex.garbage import uncollected
from nmtflex.model.inference import check_int8, make_ready
from nmtflex.model.seq2seq import Seq2Seq
from nmtflex.ops.heap import give_back
from nmtflex.runs.limits import check_aligned, run_reuse, run_thresholds, under
from nmtflex.runs.opening import Run, load_run
from nmtflex.runs.weights import digest_of
from nmtflex.text.paragraphs import ParagraphSplitter

Group = TypeVar("Group", bound=Config)


class LoadedTranslator(Translator):
    """A translator of run folders; a copy of it opens the folders again.

    A model made ready for decoding cannot be copied. So ``copy.deepcopy`` and ``pickle`` keep only
    the paths and the options; the run folders must still exist.

    Args:
        runs: Opened, at least one.
        options: Of calls that give none.
        shown: The layer and head that traces and alignments show.
        paragraphs: Splits each line into what is translated by itself.

    Raises:
        OptionError: The runs cannot do what the options ask.
    """

    reopen: tuple[Any, ...] = ()  # arguments of ``open_ensemble``

    def __init__(
        self,
        runs: Sequence[Run],
        options: Options,
        shown: ShownConfig | None,
        paragraphs: ParagraphSplitter | None,
    ) -> None:
        self._runs, self._shown = list(runs), shown
        models = self._models_for(options.search, options.threshold)
        parts = runs[0].pipeline, options.search, options.batch, paragraphs
        super().__init__(models, *parts, _confidence(runs, shown))
        self._options = options
        self.threads = torch.get_num_threads()  # as opening the runs has set them

    def __reduce__(self) -> tuple[Callable[..., Translator], tuple[Any, ...]]:
        """Return how to make a copy."""
        return _open_again, self.reopen

    def _models_for(self, search: SearchConfig, threshold: ThresholdConfig) -> list[StepModel]:
        first = self._runs[0]
        if search.replace_unk:
            check_aligned(first, "--replace-unk")
        taus = run_thresholds(self._runs, threshold.tau)
        reuse = run_reuse(self._runs, threshold.reuse_below)
        views = [self._shown if run is first or run.model.aligned else None for run in self._runs]
        return list(map(under, self._runs, taus, views, reuse))

    def _free(self) -> None:
        self._runs = []
        super()._free()


def _open_again(*arguments: Any) -> Translator:
    return open_ensemble(*arguments).translator


class Opened(NamedTuple):
    """A run, or an ensemble of some, ready to translate."""

    run: Run  # the first one of an ensemble
    translator: Translator
    tau: float | None  # threshold, if one was given
    reuse: float = 0.0  # gate below which steps do not attend
    models: Sequence[Seq2Seq] = ()  # of all runs


def open_ensemble(
    paths: Sequence[Path],
    search: SearchConfig,
    threshold: ThresholdConfig,
    batch: BatchConfig,
    device: DeviceConfig,
    shown: ShownConfig | None = None,
    paragraphs: ParagraphConfig | None = None,
    ready: bool = True,
) -> Opened:
    """Open runs that translate together, by the average of their probabilities.

    Traces, and with them replaced unknown words, come from the first run. A threshold applies to
    the runs that have a penalty. Score computations are summed over the runs.

    Args:
        paths: Run folders, at least one; a single run is an ensemble of itself.
        search: Options of the beam search.
        threshold: Of flexible attention, ``auto`` is each run's own; and of the gate of reuse.
        batch: How many sentences are decoded together, and ``--int8``.
        device: Where all runs are.
        shown: The layer and head that traces and alignments show; without it the mean of all.
        paragraphs: Whether lines are split into sentences.
        ready: False leaves ``make_all_ready`` to the forks of this process, which must not compute
            itself.

    Raises:
        OptionError: The runs differ in vocabulary, tokenizer or BPE, or the first one's attention
            cannot do what the options ask, or the device does not support ``--int8``.
        RunError: A folder is not a run, or has a newer format.
    """
    watch_forks()
    check_not_forked()
    runs = [load_run(path, device) for path in paths]
    for run in runs[1:]:
        if what := run.pipeline.difference(runs[0].pipeline):
            raise OptionError(
                f"{run.folder.path} has another {what} than {paths[0]}, and the runs of an "
                f"ensemble need the same; train them on one prepared folder, or preprocess with "
                f"--like {paths[0]}"
            )
    taus = run_thresholds(runs, threshold.tau)
    tau = next((value for value in taus if value is not None), None)
    reuse = run_reuse(runs, threshold.reuse_below)
    splitter = _splitter(runs, search, paragraphs or ParagraphConfig())
    options = Options(search, threshold, batch)
    translator = LoadedTranslator(runs, options, shown, splitter)
    models = [run.model for run in runs]
    if ready:
        make_all_ready(models, batch.int8)
    elif batch.int8:
        check_int8(models[0])
    resolved = [path.resolve() for path in paths]
    translator.reopen = (resolved, search, threshold, batch, device, shown, paragraphs)
    return Opened(runs[0], translator, tau, max(reuse), models)


def make_all_ready(models: Sequence[Seq2Seq], int8: bool) -> None:
    """Compute what depends only on the weights of each model; see ``make_ready``.

    Raises:
        OptionError: The device does not support ``--int8``.
    """
    for model in models:
        make_ready(model, int8)
    give_back()  # weights as they were read, and what building the models took


def _confidence(runs: Sequence[Run], shown: ShownConfig | None) -> Callable[[], Confidence]:
    """Return a function that reads the calibration of runs, the first time it is called."""
    folders = [run.folder for run in runs]

    @functools.cache
    def read() -> Confidence:
        if shown is not None and shown != ShownConfig():
            raise OptionError(
                "word scores are calibrated for the mean of all layers and heads; leave out layer "
                "and head"
            )
        paths, digests = [one.path for one in folders], [digest_of(one.best) for one in folders]
        return read_confidence(paths, digests, folders[0].confidence)

    return read


def _splitter(
    runs: Sequence[Run], search: SearchConfig, paragraphs: ParagraphConfig
) -> ParagraphSplitter | None:
    """Return what splits lines, if the options ask for it; else long lines are cut.

    No unit is longer than the option says, or the data of training.
    """
    pipeline = runs[0].pipeline
    if paragraphs.split == "lines":
        pipeline.source.longest = search.max_source_length or None
        return None
    trained = min(run.config["data"]["longest_source"] for run in runs)
    return ParagraphSplitter(pipeline, paragraphs.join, search.max_source_length or trained)


def load(run: str | Path | Sequence[str | Path], **options: Any) -> Translator:
    """Open a run for translation, or several runs as an ensemble.

    Args:
        run: Run folder that ``nmtflex train`` wrote. A sequence of folders is an ensemble, which
            averages the probabilities of its runs; the runs must share tokenizer, BPE and
            vocabulary.
        **options: Those of ``nmtflex translate``, with underscores. Search: ``beam``,
            ``length_penalty``, ``no_repeat_ngram``, ``retry_loops``, ``max_length``,
            ``max_length_ratio`` and ``max_source_length`` (which limit the time of a line),
            ``replace_unk``, ``unk``.
            Paragraphs: ``split`` ("sentences"), ``join``. Flexible attention: ``tau`` (a number,
            "inf", "auto"). Runs of ``--attend-every gate``: ``reuse_below``.
            Traces and replaced unknown words: ``layer`` and ``head``, from 1.
            Speed: ``batch_sentences``, ``int8``, ``device``, ``dtype``, ``threads``.

    Returns:
        A translator; it needs no file outside the run folder.

    Raises:
        OptionError: An option is unknown or has an invalid value, the list of runs is empty, or the
            runs do not match each other.
        RunError: The folder is not a run, is damaged, or has a newer format.
    """
    search, threshold = _built(SearchConfig, options), _built(ThresholdConfig, options)
    batch, shown = _built(BatchConfig, options), _built(ShownConfig, options)
    device, paragraphs = _built(DeviceConfig, options), _built(ParagraphConfig, options)
    groups = SearchConfig, ThresholdConfig, ShownConfig, BatchConfig, DeviceConfig, ParagraphConfig
    refuse_rest("load", options, groups)
    runs = [run] if isinstance(run, str | Path) else run
    if not runs:
        raise OptionError("load: there is no run in the list; name at least one")
    paths = list(map(Path, runs))
    with uncollected():
        return open_ensemble(paths, search, threshold, batch, device, shown, paragraphs).translator


def _built(group: type[Group], options: dict[str, Any]) -> Group:
    """Build an option group of the options that belong to it, and take them out."""
    return group.from_dict(take(group, options))
