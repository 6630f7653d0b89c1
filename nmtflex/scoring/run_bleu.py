"""The BLEU that validation watches and that ``eval`` reports of a run.

Moses-tokenized targets are compared as detokenised text under 13a. Everything else is compared in
the run's own words, before BPE, on both sides: how a text without spaces is cut into words moves
BLEU by points, so the signature names the segmenter.
"""

from __future__ import annotations

from collections.abc import Sequence

from nmtflex.scoring.bleu import Score, corpus_bleu, word_bleu
from nmtflex.text.pipeline import SidePipeline


def run_bleu(
    target: SidePipeline, hypotheses: Sequence[Sequence[int]], references: Sequence[str]
) -> Score:
    """Score a run's output.

    Args:
        target: The run's target side.
        hypotheses: Ids of each translation, without begin and end.
        references: Raw lines.

    Raises:
        DataError: The numbers of sentences differ, or there are none.
    """
    if target.tokenizer.name == "moses":
        lines = [target.decode(ids) for ids in hypotheses]
        return corpus_bleu(lines, references, tokenize="13a", force=True)
    score = word_bleu(
        [target.decode_words(ids) for ids in hypotheses],
        [target.words(line) for line in references],
    )
    return Score(score.value, f"{score.signature}|segmenter:{_segmenter(target)}")


def _segmenter(target: SidePipeline) -> str:
    """Name the tokenizer, with the version of its dictionary: "mecab-ipadic-1.0.0"."""
    about = target.describe()["tokenizer"]
    version = about.get("version")
    return f"{about['name']}-{version}".replace(" ", "-") if version else str(about["name"])
