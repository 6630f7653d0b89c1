"""All scores of a test set: of a run's split, or of two files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nmtflex.corpus.readers import read_lines
from nmtflex.decoding.tally import Tally
from nmtflex.errors import DataError, RunError
from nmtflex.scoring.bleu import Score, corpus_bleu, corpus_chrf, lacks_spaces
from nmtflex.scoring.ribes import RibesScore
from nmtflex.scoring.run_bleu import run_bleu, run_ribes

if TYPE_CHECKING:  # scoring two files needs no torch
    from nmtflex.decoding.translator import Translator


class Evaluation(NamedTuple):
    """What ``nmtflex eval`` reports."""

    bleu: Score
    chrf: Score
    sentences: int
    unspaced: bool  # BLEU took lines without spaces for single words
    ribes: RibesScore | None = None  # where it was asked for
    cps: float | None = None  # score computations a step; see ``Tally``
    encoding_computations: float | None = None  # score computations a sentence before the first

    def to_dict(self) -> dict[str, Any]:
        """Return numbers unrounded, under the names of ``eval --json``."""
        found = {
            "bleu": self.bleu.value,
            "chrf": self.chrf.value,
            "signature": self.bleu.signature,
            "chrf_signature": self.chrf.signature,
            "sentences": self.sentences,
        }
        if self.ribes is not None:
            found |= {"ribes": self.ribes.value, "ribes_signature": self.ribes.signature}
        if self.cps is not None:
            found |= {"cps": self.cps, "encoding_computations": self.encoding_computations}
        return found


def evaluate_files(hypothesis: Path, reference: Path, tokenize: str) -> Evaluation:
    """Score one file against another.

    Args:
        hypothesis: Translations, one a line.
        reference: References, one a line.
        tokenize: sacrebleu's tokenizer.

    Raises:
        DataError: The files are unreadable, differ in their number of lines, or are empty.
    """
    lines, references = list(read_lines(hypothesis)), list(read_lines(reference))
    check_pair(hypothesis, len(lines), reference, len(references))
    return Evaluation(
        bleu=corpus_bleu(lines, references, tokenize=tokenize),
        chrf=corpus_chrf(lines, references),
        sentences=len(references),
        unspaced=tokenize in ("13a", "none") and (lacks_spaces(lines) or lacks_spaces(references)),
    )


def read_split(raw: Path, split: str) -> tuple[list[str], list[str]]:
    """Read the raw source and target lines of a split that a run carries with it.

    Args:
        raw: The run's folder ``raw``.
        split: "valid" or "test".

    Raises:
        RunError: The run has no such split.
        DataError: The split is empty or damaged.
    """
    source, target = (raw / f"{split}.{side}.txt" for side in ("source", "target"))
    if not source.is_file():
        known = sorted(path.name.split(".")[0] for path in raw.glob("*.source.txt"))
        remedy = f"there is {' and '.join(known)}" if known else "it carries no test data"
        raise RunError(f"{raw.parent} has no split {split!r}; {remedy}")
    sources, references = list(read_lines(source)), list(read_lines(target))
    check_pair(source, len(sources), target, len(references))
    return sources, references


def evaluate_run(
    translator: Translator, sources: Sequence[str], references: Sequence[str], ribes: bool = False
) -> tuple[Evaluation, list[str]]:
    """Translate raw lines and score them; return the scores and the translations.

    Args:
        translator: Does the work.
        sources: Raw lines.
        references: Raw lines, one each.
        ribes: Whether to score by RIBES too, which needs words in every reference.

    Raises:
        DataError: RIBES is asked for, and a reference is empty.
        RunError: The model is broken.
    """
    pipeline = translator.pipeline
    tally = Tally()
    found = [best for (best,) in translator.n_best(sources, 1, tally)]
    lines = [translation.text for translation in found]
    parted_at_spaces = pipeline.target.tokenizer.name in ("none", "moses")
    words = [best.words for best in found]
    evaluation = Evaluation(
        bleu=run_bleu(pipeline.target, words, references),
        chrf=corpus_chrf(lines, references),
        sentences=len(references),
        unspaced=parted_at_spaces and lacks_spaces(references),
        ribes=run_ribes(pipeline.target, words, references) if ribes else None,
        cps=tally.cps,
        encoding_computations=tally.encoding,
    )
    return evaluation, lines


def check_pair(one: Path, one_lines: int, other: Path, other_lines: int) -> None:
    """Check that two files are parallel.

    Raises:
        DataError: Their numbers of lines differ, or there are none.
    """
    if one_lines != other_lines:
        raise DataError(
            f"{one} has {one_lines} lines, but {other} has {other_lines}; they must be parallel"
        )
    if not other_lines:
        raise DataError(f"{other} is empty: no lines to score")
