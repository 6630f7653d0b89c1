"""Options of translating with a glossary."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from nmtflex.config.base import Config, Opt


@dataclass(frozen=True, kw_only=True, slots=True)
class GlossaryConfig(Config):
    """Glossary."""

    glossary: Annotated[
        Path | None,
        Opt(
            "File of terms that come out as given, one line each: source term, tab, target term. "
            "A term is found as whole words; inflected forms are left to the model."
        ),
    ] = None
    ignore_case: Annotated[
        bool,
        Opt(
            "Find the terms of --glossary in any case. By default only the first letter may be a "
            "capital, at the beginning of a sentence.",
            flag="--ignore-case",
        ),
    ] = False

    def validate(self) -> list[str]:
        """Check that --ignore-case has an effect."""
        return [] if self.glossary else self.idle({"ignore_case": "without --glossary"})
