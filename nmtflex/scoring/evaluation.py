"""All scores of systems against the same references."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nmtflex.config import ScoreConfig
from nmtflex.corpus.readers import read_lines
from nmtflex.errors import DataError
from nmtflex.scoring.alignment import AlignmentScore
from nmtflex.scoring.bleu import (
    Metric,
    Score,
    bleu_metric,
    chrf_metric,
    corpus_score,
    lacks_spaces,
    sentence_scores,
    ter_metric,
)
from nmtflex.scoring.buckets import Bucket, score_by_length
from nmtflex.scoring.ribes import RibesScore, word_ribes
from nmtflex.scoring.significance import Comparison, Resampling, compare, compare_ribes
from nmtflex.scoring.texts import Segmentation, Text, sacrebleu_segmentation, wat_segmentation
from nmtflex.text.visible import counted


class Evaluation(NamedTuple):
    """The scores of one system."""

    bleu: Score
    chrf: Score
    sentences: int
    ter: Score | None = None  # if requested
    ribes: RibesScore | None = None  # if requested
    cps: float | None = None  # score computations a step; see ``Tally``
    cps_total: float | None = None  # of all heads and attending layers together
    encoding_computations: float | None = None  # score computations a sentence before the first
    decoding_seconds: float | None = None  # of a run
    alignment: AlignmentScore | None = None  # of a run with the references, if requested
    truncated: int | None = None  # translations of a run that reached the maximum length
    looping: int = 0  # of these, those that repeat themselves

    @property
    def scores(self) -> dict[str, Score | RibesScore]:
        """The scores, by their printed names."""
        known = {"BLEU": self.bleu, "chrF2": self.chrf, "TER": self.ter, "RIBES": self.ribes}
        return {name: score for name, score in known.items() if score is not None}

    def to_dict(self) -> dict[str, Any]:
        """Return unrounded numbers, by the names of ``eval --json``."""
        found: dict[str, Any] = {
            "bleu": self.bleu.value,
            "chrf": self.chrf.value,
            "signature": self.bleu.signature,
            "chrf_signature": self.chrf.signature,
            "sentences": self.sentences,
        }
        if self.bleu.parts is not None:
            found |= self.bleu.parts._asdict()
        if self.ter is not None:
            found |= {"ter": self.ter.value, "ter_signature": self.ter.signature}
        if self.ribes is not None:
            found |= {"ribes": self.ribes.value, "ribes_signature": self.ribes.signature}
        if self.cps is not None:
            found |= {"cps": self.cps, "cps_total": self.cps_total}
            found["encoding_computations"] = self.encoding_computations
        if self.decoding_seconds is not None:
            found["decoding_seconds"] = self.decoding_seconds
        if self.alignment is not None:
            rates = self.alignment._asdict()
            found["aer"] = rates.pop("aer")
            found |= {f"alignment_{name}": value for name, value in rates.items()}
        if self.truncated is not None:
            found |= {"truncated": self.truncated, "looping": self.looping}
        return found


class _Measure(NamedTuple):
    """A metric of sacrebleu, the part of a text it reads, and what its signature lacks."""

    metric: Metric
    reads: Callable[[Text], Sequence[Any]]
    segmenter: str = ""


class Scorer:
    """Scores outputs against references.

    Args:
        segmentation: How lines become the words of BLEU and RIBES.
        references: One or more texts.
        config: Which scores, and how; the segmentation overrides its options about words.

    Raises:
        DataError: The references differ in length or are empty, or RIBES is requested and a
            reference has no words.
    """

    def __init__(
        self, segmentation: Segmentation, references: Sequence[Text], config: ScoreConfig
    ) -> None:
        self.segmentation = segmentation
        self.references = references
        self.case_sensitive = config.case_sensitive or segmentation.wat
        self.ribes = config.ribes or segmentation.wat
        check_parallel(*map(_size, references))
        if self.ribes:
            self._check_references()
        self._lowercase = config.lowercase
        self._bleu = self._bleu_measure()
        self._chrf = _Measure(chrf_metric(lowercase=config.lowercase), _lines)
        self._ter = self._ter_measure() if config.ter else None

    def evaluate(self, output: Text) -> Evaluation:
        """Return every score of a system."""
        return Evaluation(
            bleu=self.bleu(output),
            chrf=self._score(self._chrf, output),
            ter=self._score(self._ter, output) if self._ter else None,
            ribes=self._ribes(output) if self.ribes else None,
            sentences=len(output),
        )

    def bleu(self, output: Text) -> Score:
        """Return only a system's BLEU."""
        return self._score(self._bleu, output)

    def compare(self, outputs: Mapping[str, Text], resampling: Resampling) -> list[Comparison]:
        """Compare systems with the first, by every score; a single one gets only intervals."""
        found = []
        for measure in (self._bleu, self._chrf, self._ter):
            if measure is not None:
                systems = {name: measure.reads(text) for name, text in outputs.items()}
                references = [measure.reads(text) for text in self.references]
                rows = compare(measure.metric, systems, references, resampling)
                found += [row._replace(signature=row.signature + measure.segmenter) for row in rows]
        if self.ribes:
            scores = {name: self._ribes(text) for name, text in outputs.items()}
            found += compare_ribes(scores, resampling)
        return found

    def by_length(self, output: Text, source_lengths: Sequence[int]) -> list[Bucket[Score]]:
        """Return the BLEU for each range of source lengths, in tokens."""
        return score_by_length(
            lambda *sides: corpus_score(self._bleu.metric, *sides),
            source_lengths,
            *self._sides(self._bleu, output),
        )

    def by_sentence(self, output: Text) -> tuple[dict[str, Sequence[float]], str]:
        """Return columns of scores and lengths, one row a sentence, and the signature of BLEU.

        Lengths are in BLEU's words; of several references, the closest in length counts.
        """
        measures = {"bleu": self._bleu_measure(by_sentence=True), "chrf": self._chrf}
        columns: dict[str, Sequence[float]] = {
            name: self._sentence_scores(measure, output) for name, measure in measures.items()
        }
        if self.ribes:
            columns["ribes"] = self._ribes(output).sentences
        if self._ter:
            columns["ter"] = self._sentence_scores(self._ter, output)
        lengths, *others = (list(map(len, text.words)) for text in (output, *self.references))
        columns["hypothesis_length"] = lengths
        columns["reference_length"] = [
            min(several, key=lambda size: (abs(size - length), size))
            for length, *several in zip(lengths, *others, strict=True)
        ]
        bleu = measures["bleu"]
        return columns, f"{bleu.metric.by.get_signature()}{bleu.segmenter}"

    def unspaced(self, output: Text) -> str | None:
        """Name a text whose lines BLEU took for single words, if there is one."""
        if not self.segmentation.at_spaces:
            return None
        texts = (*self.references, output)
        return next((text.name for text in texts if lacks_spaces(text.lines)), None)

    def tokenized(self, output: Text) -> str | None:
        """Name a text that looks tokenized and that BLEU tokenized again, if there is one."""
        if self.segmentation.tokenize not in ("13a", "intl"):
            return None
        texts = (*self.references, output)
        return next((text.name for text in texts if _looks_tokenized(text.lines)), None)

    def _bleu_measure(self, by_sentence: bool = False) -> _Measure:
        tokenize, lowercase = self.segmentation.tokenize, self._lowercase
        metric = bleu_metric(tokenize, lowercase=lowercase, by_sentence=by_sentence, force=True)
        if tokenize is not None:
            return _Measure(metric, _lines)
        return _Measure(metric, _words, f"|{self.segmentation.signature}")

    def _ter_measure(self) -> _Measure:
        if self.segmentation.tokenize == "13a":
            return _Measure(ter_metric(), _lines)
        return _Measure(ter_metric(words=True), _words, f"|{self.segmentation.signature}")

    def _ribes(self, output: Text) -> RibesScore:
        score = word_ribes(
            output.words,
            *(text.words for text in self.references),
            case_sensitive=self.case_sensitive,
        )
        return score._replace(signature=f"{score.signature}|{self.segmentation.signature}")

    def _score(self, measure: _Measure, output: Text) -> Score:
        score = corpus_score(measure.metric, *self._sides(measure, output))
        return score._replace(signature=score.signature + measure.segmenter)

    def _sentence_scores(self, measure: _Measure, output: Text) -> list[float]:
        return sentence_scores(measure.metric, *self._sides(measure, output)).values

    def _sides(self, measure: _Measure, output: Text) -> list[Sequence[Any]]:
        """Return what a metric reads of an output and the references."""
        check_parallel(*map(_size, (output, *self.references)))
        return [measure.reads(text) for text in (output, *self.references)]

    def _check_references(self) -> None:
        for reference in self.references:
            for number, words in enumerate(reference.words, start=1):
                if not words:
                    raise DataError(
                        f"{reference.name}:{number}: an empty reference, which RIBES cannot score; "
                        f"remove the line from all files, or score without RIBES"
                    )


def file_segmentation(config: ScoreConfig) -> Segmentation:
    """Return how lines of files become words.

    Raises:
        DataError: A package or a model is missing or unusable.
    """
    return (
        wat_segmentation(config) if config.wat else sacrebleu_segmentation(config.tokenize or "13a")
    )


def read_texts(paths: Sequence[Path], segmentation: Segmentation) -> list[Text]:
    """Read files with one sentence a line.

    Raises:
        DataError: One cannot be read.
    """
    return [segmentation.text(str(path), list(read_lines(path))) for path in paths]


def check_parallel(*files: tuple[str, int]) -> None:
    """Check that files have the same number of lines, and at least one.

    Args:
        files: Name and number of lines of each.

    Raises:
        DataError: They have not.
    """
    first, *others = files
    for other in others:
        if first[1] != other[1]:
            (_, end), (longer, _) = sorted((first, other), key=lambda file: file[1])
            raise DataError(
                f"{first[0]} has {counted(first[1], 'line')}, but {other[0]} has "
                f"{other[1]:,}; they must be parallel, and {longer}:{end + 1} has no counterpart"
            )
    name, count = files[-1]
    if not count:
        raise DataError(f"{name} is empty: no lines to score")


def _size(text: Text) -> tuple[str, int]:
    return text.name, len(text)


def _lines(text: Text) -> Sequence[str]:
    return text.lines


def _words(text: Text) -> Sequence[Sequence[str]]:
    return text.words


def _looks_tokenized(lines: Sequence[str]) -> bool:
    """Whether most lines that end in a period have a space before it."""
    return 2 * sum(line.endswith(" .") for line in lines) > sum(
        line.endswith(".") for line in lines
    )
