"""The usual scores of lines, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nmtflex.scoring.bleu import (
    Score,
    SentenceScores,
    Smoothing,
    bleu_metric,
    chrf_metric,
    corpus_score,
    sentence_scores,
    ter_metric,
)
from nmtflex.scoring.ribes import ALPHA, BETA, RibesScore, word_ribes
from nmtflex.text.tokenizers import WORD


def corpus_bleu(
    hypotheses: Sequence[str],
    *references: Sequence[str],
    tokenize: str = "13a",
    lowercase: bool = False,
    force: bool = False,
) -> Score:
    """Return the BLEU of lines; ``bleu_metric`` describes the options."""
    metric = bleu_metric(tokenize, lowercase=lowercase, force=force)
    return corpus_score(metric, hypotheses, *references)


def sentence_bleu(
    hypotheses: Sequence[Any],
    *references: Sequence[Any],
    tokenize: str | None = "13a",
    lowercase: bool = False,
) -> SentenceScores:
    """Return the smoothed BLEU of each sentence; ``bleu_metric`` describes the options."""
    metric = bleu_metric(tokenize, lowercase=lowercase, by_sentence=True, force=True)
    return sentence_scores(metric, hypotheses, *references)


def corpus_chrf(
    hypotheses: Sequence[str], *references: Sequence[str], lowercase: bool = False
) -> Score:
    """Return the chrF2 of lines."""
    return corpus_score(chrf_metric(lowercase=lowercase), hypotheses, *references)


def corpus_ter(
    hypotheses: Sequence[str], *references: Sequence[str], case_sensitive: bool = False
) -> Score:
    """Return the TER of lines, in percent of the references' words; less is better."""
    return corpus_score(ter_metric(case_sensitive=case_sensitive), hypotheses, *references)


def corpus_ribes(
    hypotheses: Sequence[str],
    *references: Sequence[str],
    alpha: float = ALPHA,
    beta: float = BETA,
    case_sensitive: bool = False,
) -> RibesScore:
    """Return the RIBES of lines whose words are parted by ASCII white space alone.

    Args:
        hypotheses: Lines.
        references: One sequence of lines for each reference.
        alpha: Exponent of the precision, at least 0.
        beta: Exponent of the brevity penalty, at least 0.
        case_sensitive: Keep case; as in the official program, it is lowered otherwise.

    """
    return word_ribes(
        [WORD.findall(line) for line in hypotheses],
        *([WORD.findall(line) for line in lines] for lines in references),
        alpha=alpha,
        beta=beta,
        case_sensitive=case_sensitive,
    )


def word_bleu(
    hypotheses: Sequence[Sequence[str]],
    *references: Sequence[Sequence[str]],
    lowercase: bool = False,
    smooth: Smoothing = "none",
) -> Score:
    """Return the BLEU of sentences that are lists of words, as multi-bleu.perl does."""
    metric = bleu_metric(None, lowercase=lowercase, smooth=smooth)
    return corpus_score(metric, hypotheses, *references)
