"""BLEU and chrF by sacrebleu, each with the signature that makes the number comparable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from nmtflex.errors import DataError
from nmtflex.text.tokenizers import WORD

# sacrebleu parts words with str.split(), for which an ideographic or a no-break space inside a word
# ends it. Each white-space character becomes two private-use ones, of which the first becomes
# itself twice where it stands in the text, so that different words stay different.
_ESCAPE = "\ue000"
_SPACES = [chr(code) for code in range(0x3001) if chr(code).isspace()]
_PROTECTED = str.maketrans(
    {_ESCAPE: _ESCAPE * 2}
    | {space: _ESCAPE + chr(0xE001 + index) for index, space in enumerate(_SPACES)}
)


class Score(NamedTuple):
    """A number, 0-100, and how it was computed."""

    value: float
    signature: str


def corpus_bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    tokenize: str = "13a",
    force: bool = False,
) -> Score:
    """Return the BLEU of a corpus, case kept.

    Args:
        hypotheses: Lines.
        references: Lines, one for each hypothesis.
        tokenize: sacrebleu's tokenizer; "none" parts words at ASCII white space alone.
        force: Keep sacrebleu from warning of text that looks tokenized.

    Raises:
        DataError: The numbers of lines differ, or there are none.
    """
    if tokenize == "none":
        return word_bleu(
            [WORD.findall(line) for line in hypotheses],
            [WORD.findall(line) for line in references],
        )
    return _score(BLEU(tokenize=tokenize, force=force), hypotheses, references)


def word_bleu(hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> Score:
    """Return the BLEU of a corpus whose sentences are lists of words, as multi-bleu.perl does.

    Raises:
        DataError: The numbers of sentences differ, or there are none.
    """
    return _score(
        BLEU(tokenize="none", force=True),
        [_protected_line(words) for words in hypotheses],
        [_protected_line(words) for words in references],
    )


def corpus_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Return the chrF2 of a corpus.

    Raises:
        DataError: The numbers of lines differ, or there are none.
    """
    return _score(CHRF(), hypotheses, references)


def lacks_spaces(lines: Sequence[str]) -> bool:
    """Say whether lines look like a language written without spaces, and not segmented.

    True where lines of ten characters and more have under one space in twenty characters.
    """
    long = [line for line in lines if len(line) >= 10]
    return 20 * sum(line.count(" ") for line in long) < sum(map(len, long))


def _protected_line(words: Sequence[str]) -> str:
    return " ".join([word.translate(_PROTECTED) for word in words])


def _score(metric: BLEU | CHRF, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    if len(hypotheses) != len(references):
        raise DataError(f"{len(hypotheses)} hypotheses, but {len(references)} references")
    if not references:
        raise DataError("no sentences to score")
    value = metric.corpus_score(hypotheses, [references]).score
    # A perfect score comes out as 100.00000000000004.
    return Score(min(float(value), 100.0), str(metric.get_signature()))
