"""Options of translating lines of several sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from nmtflex.config.base import Config, Opt


@dataclass(frozen=True, kw_only=True, slots=True)
class ParagraphConfig(Config):
    """Paragraphs."""

    split: Annotated[
        Literal["lines", "sentences"],
        Opt(
            "What is translated by itself: whole lines, or the sentences of each line, joined "
            "again with the white space between them. Longer sentences than --max-source-length, "
            "or than the run was trained with, are split at clauses or words, so that nothing is "
            "cut off."
        ),
    ] = "lines"
    join: Annotated[
        int,
        Opt(
            "With --split sentences: translate up to N consecutive sentences of a line together, "
            "for a run whose data was made with preprocess --concat.",
            ge=1,
        ),
    ] = 1

    def validate(self) -> list[str]:
        """Check that --join has an effect."""
        return self.idle({"join": "without --split sentences"} if self.split == "lines" else {})
