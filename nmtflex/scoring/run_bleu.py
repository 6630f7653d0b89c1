"""The BLEU that validation watches and that ``eval`` reports of a run, and its RIBES.

Moses-tokenized targets are compared as detokenised text under 13a. Everything else is compared in
the run's own words, before BPE, on both sides: how a text without spaces is cut into words moves
BLEU by points, so the signature names the segmenter. RIBES reads the words that BLEU reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from nmtflex.scoring.bleu import Score, corpus_bleu, word_bleu
from nmtflex.scoring.ribes import RibesScore, word_ribes
from nmtflex.text.pipeline import SidePipeline


def run_bleu(
    target: SidePipeline, hypotheses: Sequence[Sequence[str]], references: Sequence[str]
) -> Score:
    """Score a run's output.

    Args:
        target: The run's target side.
        hypotheses: Words of each translation, as the target's tokenizer has them.
        references: Raw lines.

    Raises:
        DataError: The numbers of sentences differ, or there are none.
    """
    if target.tokenizer.name == "moses":
        lines = [target.tokenizer.detokenize(words) for words in hypotheses]
        return corpus_bleu(lines, references, tokenize="13a", force=True)
    score = word_bleu(hypotheses, [target.words(line) for line in references])
    return Score(score.value, f"{score.signature}|segmenter:{_segmenter(target)}")


def run_ribes(
    target: SidePipeline, hypotheses: Sequence[Sequence[str]], references: Sequence[str]
) -> RibesScore:
    """Score a run's output by RIBES, case lowered as in the official program; see ``run_bleu``.

    Raises:
        DataError: The numbers of sentences differ, there are none, or a reference has no words.
    """
    if target.tokenizer.name == "moses":
        part: Callable[[str], str] = Tokenizer13a()  # type: ignore[no-untyped-call]
        found = [part(target.tokenizer.detokenize(words)).split() for words in hypotheses]
        score = word_ribes(found, [part(line).split() for line in references])
        return score._replace(signature=f"{score.signature}|tok:13a")
    score = word_ribes(hypotheses, [target.words(line) for line in references])
    return score._replace(signature=f"{score.signature}|segmenter:{_segmenter(target)}")


def _segmenter(target: SidePipeline) -> str:
    """Name the tokenizer, with the version of its dictionary: "mecab-ipadic-1.0.0"."""
    about = target.describe()["tokenizer"]
    version = about.get("version")
    return f"{about['name']}-{version}".replace(" ", "-") if version else str(about["name"])
