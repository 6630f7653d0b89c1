"""Raw lines in, raw lines out: what ``nmtflex translate`` and the Python API share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from nmtflex.config import BatchConfig, Config, DeviceConfig, SearchConfig, nearest, options_of
from nmtflex.decoding.batching import batches
from nmtflex.decoding.ensemble import Ids, StepModel
from nmtflex.decoding.search import Hypothesis, beam_search
from nmtflex.decoding.tally import Tally
from nmtflex.errors import OptionError
from nmtflex.model.run import load_run
from nmtflex.text.pipeline import TextPipeline

Group = TypeVar("Group", bound=Config)


class Translation(NamedTuple):
    """A hypothesis as text: the raw line, the tokens it was made of, and its scores."""

    text: str
    tokens: list[str]
    score: float
    log_probability: float


class Translator:
    """Translates lines with one model, or with several as an ensemble.

    Args:
        models: In evaluation mode, with one vocabulary.
        pipeline: The text pipeline they were trained with.
        search: Options of the beam search.
        batch: How many sentences are decoded together; it changes the speed alone.
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

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Return the best translation of each line; a line without words gives an empty one.

        Raises:
            TypeError: ``lines`` is one string.
        """
        if isinstance(lines, str):
            raise TypeError("translate takes a list of lines, not one string")
        found = self.translate_ids([self.pipeline.source.encode(line) for line in lines])
        return [self.pipeline.target.decode(hypotheses[0].ids) for hypotheses in found]

    def n_best(self, lines: Sequence[str], count: int) -> list[list[Translation]]:
        """Return the ``count`` best translations of each line, the best first.

        There may be fewer where the search ends with fewer; there are never more than the beam.
        """
        found = self.translate_ids([self.pipeline.source.encode(line) for line in lines])
        return [[self._text(best) for best in hypotheses[:count]] for hypotheses in found]

    def translate_ids(
        self, sources: Sequence[Ids], tally: Tally | None = None
    ) -> list[list[Hypothesis]]:
        """Return each sentence's hypotheses, the best first; count for a tally if one is given.

        A sentence without tokens has one hypothesis, empty and with score 0.

        Raises:
            RunError: The model is broken and predicts NaN.
        """
        found = [[Hypothesis([], 0.0, 0.0)] for _ in sources]
        lengths = [len(ids) for ids in sources]
        for batch in batches(lengths, self.batch.batch_sentences, self.search.beam):
            chosen = [sources[index] for index in batch]
            hypotheses = beam_search(self._models, chosen, self.search, tally)
            for index, best in zip(batch, hypotheses, strict=True):
                found[index] = best
        return found

    def _text(self, hypothesis: Hypothesis) -> Translation:
        target = self.pipeline.target
        return Translation(
            text=target.decode(hypothesis.ids),
            tokens=[target.vocabulary.token(token) for token in hypothesis.ids],
            score=hypothesis.score,
            log_probability=hypothesis.log_probability,
        )


def load(run: str | Path, **options: Any) -> Translator:
    """Open a run for translation.

    Example::

        translator = nmtflex.load("runs/toy", beam=5)
        translator.translate(["the dog that sees the cat sleeps"])

    Args:
        run: Run folder that ``nmtflex train`` made.
        options: Those of ``nmtflex translate``, with underscores: ``beam``, ``length_penalty``,
            ``max_length``, ``batch_sentences``, ``device``, ``dtype``, ``threads``.

    Raises:
        OptionError: An unknown option, or a value that is not allowed.
        RunError: The folder is no run, or one of a newer format.
    """
    search = _take(SearchConfig, options)
    batch = _take(BatchConfig, options)
    device = _take(DeviceConfig, options)
    if options:
        name = min(options)
        groups = (SearchConfig, BatchConfig, DeviceConfig)
        known = [key for group in groups for key in options_of(group)]
        raise OptionError(f"load: unknown option {name!r}{nearest(name, known)}")
    opened = load_run(Path(run), device)
    return Translator([opened.model], opened.pipeline, search, batch)


def _take(group: type[Group], options: dict[str, Any]) -> Group:
    """Build an option group of the options that belong to it, and take them out."""
    names = [name for name in options_of(group) if name in options]
    return group.from_dict({name: options.pop(name) for name in names})
