"""BLEU, chrF and TER by sacrebleu, each with the signature that makes the number comparable.

``corpus_score`` and ``sentence_scores`` apply a ``Metric``.
Hypotheses are one sequence of sentences, and each reference is another, of the same length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from sacrebleu.metrics.bleu import BLEU, BLEUScore
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from nmtflex.errors import DataError
from nmtflex.text.tokenizers import WORD

Smoothing = Literal["exp", "none"]

# sacrebleu separates words with str.split(), which splits a word at an ideographic or no-break
# space. Each white-space character becomes two private-use ones, and the first of these is doubled
# where the text contains it, so that different words stay different.
_ESCAPE = "\ue000"
_SPACES = [chr(code) for code in range(0x3001) if chr(code).isspace()]
_PROTECTED = str.maketrans(
    {_ESCAPE: _ESCAPE * 2}
    | {space: _ESCAPE + chr(0xE001 + index) for index, space in enumerate(_SPACES)}
)


class BleuParts(NamedTuple):
    """The parts of a BLEU; as text, the end of the line that multi-bleu.perl prints."""

    precisions: tuple[float, ...]  # percent, of one word to four
    brevity_penalty: float  # 0-1
    hypothesis_length: int  # words
    reference_length: int  # words, of the reference closest in length

    @property
    def ratio(self) -> float:
        """Return hypothesis words per reference word."""
        return self.hypothesis_length / self.reference_length if self.reference_length else 0.0

    def __str__(self) -> str:
        precisions = "/".join(f"{precision:.1f}" for precision in self.precisions)
        return (
            f"{precisions} (BP={self.brevity_penalty:.3f}, ratio={self.ratio:.3f}, "
            f"hyp_len={self.hypothesis_length}, ref_len={self.reference_length})"
        )


class Score(NamedTuple):
    """A number, and how it was computed."""

    value: float  # 0-100; TER may be more
    signature: str
    parts: BleuParts | None = None  # of BLEU alone


class SentenceScores(NamedTuple):
    """A number for each sentence, and how they were computed."""

    values: list[float]  # 0-100; TER may be more
    signature: str


class _OnceTER(TER):
    """TER that caches the edits of each sentence: scores and tests need the same ones."""

    def __init__(self, case_sensitive: bool) -> None:
        super().__init__(case_sensitive=case_sensitive)
        self._known: dict[str, list[float]] = {}

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: Any) -> list[float]:
        key = repr((hypothesis, ref_kwargs))
        if key not in self._known:
            self._known[key] = super()._compute_segment_statistics(hypothesis, ref_kwargs)
        return self._known[key]


class Metric(NamedTuple):
    """A metric of sacrebleu, and the function from a sentence to its line."""

    by: BLEU | CHRF | TER
    line: Callable[[Any], str]


def bleu_metric(
    tokenize: str | None = "13a",
    *,
    lowercase: bool = False,
    smooth: Smoothing | None = None,
    by_sentence: bool = False,
    force: bool = False,
) -> Metric:
    """Return BLEU.

    Args:
        tokenize: sacrebleu's tokenizer; "none" splits words at ASCII white space only, and None
            takes sentences as lists of words.
        lowercase: Lowercase both sides.
        smooth: The precision if no n-gram of some length matches: "none" makes the score 0, as
            multi-bleu.perl does, and is the default for words; "exp" halves the precision each
            time, and is the default for sacrebleu's tokenizers.
        by_sentence: Smooth, and ignore n-grams longer than the hypothesis.
        force: Suppress sacrebleu's warning about text that looks tokenized.
    """
    words = tokenize in (None, "none")
    line = {None: protected_line, "none": _protected_words}.get(tokenize, str)
    if smooth is None:
        smooth = "none" if words and not by_sentence else "exp"
    metric = BLEU(
        tokenize="none" if words else tokenize,
        lowercase=lowercase,
        smooth_method=smooth,
        effective_order=by_sentence,
        force=force or words,
    )
    return Metric(metric, line)


def chrf_metric(*, lowercase: bool = False) -> Metric:
    """Return chrF2 of lines."""
    return Metric(CHRF(lowercase=lowercase), str)


def ter_metric(*, words: bool = False, case_sensitive: bool = False) -> Metric:
    """Return TER.

    Args:
        words: Sentences are lists of words, not lines, which sacrebleu splits at white space.
        case_sensitive: Keep case; otherwise text is lowercased, as in tercom.
    """
    return Metric(_OnceTER(case_sensitive=case_sensitive), protected_line if words else str)


def corpus_score(metric: Metric, hypotheses: Sequence[Any], *references: Sequence[Any]) -> Score:
    """Score a corpus.

    Raises:
        DataError: The numbers of sentences differ, or there are none.
    """
    lines, reference_lines = prepared(metric, hypotheses, references)
    score = metric.by.corpus_score(lines, reference_lines)
    signature = str(metric.by.get_signature())
    if not isinstance(score, BLEUScore):
        return Score(bounded(metric, score.score), signature)
    parts = BleuParts(tuple(score.precisions), score.bp, score.sys_len, score.ref_len)
    return Score(bounded(metric, score.score), signature, parts)


def sentence_scores(
    metric: Metric, hypotheses: Sequence[Any], *references: Sequence[Any]
) -> SentenceScores:
    """Score each sentence.

    Raises:
        DataError: The numbers of sentences differ, or there are none.
    """
    lines, reference_lines = prepared(metric, hypotheses, references)
    values = [
        bounded(metric, metric.by.sentence_score(line, several).score)
        for line, *several in zip(lines, *reference_lines, strict=True)
    ]
    return SentenceScores(values, str(metric.by.get_signature()))


def lacks_spaces(lines: Sequence[str]) -> bool:
    """Whether lines look like unsegmented text of a language written without spaces.

    True if lines of at least 10 characters have less than one space in 20 characters.
    """
    long = [line for line in lines if len(line) >= 10]
    return 20 * sum(line.count(" ") for line in long) < sum(map(len, long))


def protected_line(words: Sequence[str]) -> str:
    """Join words to a line that sacrebleu splits into them again, with any white space inside."""
    return " ".join([word.translate(_PROTECTED) for word in words])


def prepared(
    metric: Metric, hypotheses: Sequence[Any], references: Sequence[Sequence[Any]]
) -> tuple[list[str], list[list[str]]]:
    """Return the lines for sacrebleu.

    Raises:
        DataError: The numbers of sentences differ, or there are none.
        ValueError: There is no reference.
    """
    if not references:
        raise ValueError(f"{len(hypotheses)} hypotheses, but no references were given")
    for number, sentences in enumerate(references, start=1):
        if len(sentences) != len(hypotheses):
            place = f" in reference {number}" if len(references) > 1 else ""
            raise DataError(f"{len(hypotheses)} hypotheses, but {len(sentences)} references{place}")
    if not hypotheses:
        raise DataError("no sentences to score")
    return list(map(metric.line, hypotheses)), [list(map(metric.line, one)) for one in references]


def bounded(metric: Metric, value: float) -> float:
    """Return a score of at most 100: sacrebleu's perfect BLEU is 100.00000000000004."""
    return float(value) if isinstance(metric.by, TER) else min(float(value), 100.0)


def _protected_words(line: str) -> str:
    return protected_line(WORD.findall(line))
