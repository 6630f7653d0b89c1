"""Options of joining training sentences to longer samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from nmtflex.config.base import Config, Opt, options_of


@dataclass(frozen=True, kw_only=True, slots=True)
class ConcatConfig(Config):
    """Training on paragraphs."""

    concat: Annotated[
        int,
        Opt(
            "Beside every training sentence, add samples of 2 to N sentences joined, with each "
            "sentence in at most one of them and lengths drawn uniformly; 1 for none. Subwords "
            "and vocabularies are made from the single sentences. For translate --split sentences "
            "--join N.",
            ge=1,
        ),
    ] = 1
    concat_order: Annotated[
        Literal["corpus", "random"],
        Opt(
            "corpus: sentences that follow each other in a file of --train; a dropped pair, such "
            "as an empty line, ends a document. random: any sentences, out of 100,000 neighbours."
        ),
    ] = "corpus"
    concat_documents: Annotated[
        list[Path],
        Opt(
            "File with the document of each training line, a line each: no sample crosses from "
            "one to another. With several --train, give one for each in the same order.",
        ),
    ] = field(default_factory=list)
    concat_length: Annotated[
        int,
        Opt(
            "Longest joined sample on either side, in tokens of its sentences after subwords; a "
            "sample ends earlier instead of getting longer; 0 for no limit.",
            ge=0,
        ),
    ] = 1000
    concat_seed: Annotated[int, Opt("Random seed; the same seed gives the same samples.", ge=0)] = 1

    def validate(self) -> list[str]:
        """Check that every option has an effect."""
        if self.concat == 1:
            rest = [name for name in options_of(ConcatConfig) if name != "concat"]
            return self.idle(dict.fromkeys(rest, "without --concat"))
        if self.concat_order == "random":
            return self.idle({"concat_documents": "with --concat-order random"})
        return []
